"""Brings the schema of a database up to date when it is opened."""

from sqlalchemy import Connection, inspect, text

from advisor.errors import StorageError
from advisor.storage.database import Database
from advisor.storage.tables import NEWEST_REVISION, PREFIX, VERSION_TABLE

_LOCK_KEY = 7_310_283_465  # any number, the same in every process


def prepare(database: Database) -> None:
    """Create or upgrade our tables, leaving every other alone; safe under concurrent openers.

    Raises StorageError where the database was written by a newer version of the program, or holds tables
    of another one under our names.
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
    foreign = sorted(name for name in inspect(connection).get_table_names() if name.startswith(PREFIX))
    if revision is None and foreign:
        raise StorageError(
            f"The database {database.url} already has tables of another program under names that are needed "
            f"here ({', '.join(foreign)}). Name another database with --storage."
        )


def _revision(connection: Connection) -> str | None:
    """Return the schema's revision, or None where none has been recorded."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return None if revision is None else str(revision)
