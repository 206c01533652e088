"""Brings the schema of a database up to date when it is opened."""

from sqlalchemy import Connection, Inspector, inspect, text

from advisor.errors import StorageError
from advisor.storage.database import Database
from advisor.storage.tables import NEWEST_REVISION, PREFIX, VERSION_TABLE

_OPTUNAS = frozenset(
    {"alembic_version", "studies", "study_directions", "study_user_attributes", "study_system_attributes"}
    | {"trials", "trial_user_attributes", "trial_system_attributes", "trial_params", "trial_values"}
    | {"trial_intermediate_values", "trial_heartbeats", "version_info"}
)
_MARK_OF_OPTUNA = ("version_info", {"schema_version", "library_version"})
"""The table, and columns of it, without which tables of Optuna's names are another program's."""
_LOCK_KEY = 7_310_283_465  # any number, the same in every process


def prepare(database: Database) -> None:
    """Create or upgrade our tables, leaving every other alone; safe under concurrent openers.

    Raises StorageError where the database was written by a newer version of the program, is damaged, or
    holds tables of another program under our names or Optuna's.
    """
    with database.read() as connection:
        if _revision(connection) == NEWEST_REVISION:
            return
    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        # Another process may have been first while this one waited.
        if _revision(connection) != NEWEST_REVISION:
            _upgrade(connection, database)


def _upgrade(connection: Connection, database: Database) -> None:
    # Alembic is slow to import and is needed only where there is something to do.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "advisor.storage:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    _refuse_others(connection, database, known)
    command.upgrade(config, "head")


def _refuse_others(connection: Connection, database: Database, known: set[str]) -> None:
    revision = _revision(connection)
    if revision is not None and revision not in known:
        raise StorageError(
            f"The database {database.url} was written by a newer version of the program (schema {revision}; "
            f"this one knows {NEWEST_REVISION}). Upgrade with: pip install --upgrade batch-advisor"
        )
    if revision is None:
        _refuse_foreign(inspect(connection), database)


def _refuse_foreign(inspector: Inspector, database: Database) -> None:
    """Refuse what would stand in the way of our tables or, beside them, of Optuna's."""
    names = set(inspector.get_table_names())
    if VERSION_TABLE in names:
        raise StorageError(
            f"The database {database.url} is damaged: its table {VERSION_TABLE} is empty. "
            "Restore it from a copy, or name another with --storage."
        )
    foreign = {name for name in names if name.startswith(PREFIX)}
    if not _has_mark_of_optuna(inspector, names):
        foreign |= names & _OPTUNAS
    if foreign:
        raise StorageError(
            f"The database {database.url} already has tables of another program under names that are needed "
            f"here ({', '.join(sorted(foreign))}). Name another database with --storage."
        )


def _has_mark_of_optuna(inspector: Inspector, names: set[str]) -> bool:
    table, columns = _MARK_OF_OPTUNA
    return table in names and columns <= {column["name"] for column in inspector.get_columns(table)}


def _revision(connection: Connection) -> str | None:
    """Return the schema's revision, or None where none has been recorded."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return None if revision is None else str(revision)
