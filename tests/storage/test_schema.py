"""The schema: what migrations build, beside Optuna's tables, from old databases and for many openers."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from optuna.storages import RDBStorage
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from advisor.records.measurement import BatchMeasurement
from advisor.records.recommendation import Advice
from advisor.records.storage_url import parse_storage_url
from advisor.records.trials import TrialState
from advisor.storage import migrations
from advisor.storage.store import open_store
from advisor.storage.tables import NEWEST_REVISION, PREFIX, VERSION_TABLE, is_ours, metadata
from tests.contracts import samples
from tests.tuning.optuna_view import optuna_storage

ASSETS = Path(__file__).parents[1] / "assets"
STUDY = samples.study().name


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine: Engine = create_engine(parse_storage_url(url).url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def use_ours(url: str) -> None:
    with closing(open_store(url)) as store:
        store.open_study(samples.study())
        store.start_trial(STUDY, len(store.trials(STUDY)), samples.plan())


def use_optunas(url: str) -> None:
    with optuna_storage(url) as storage:
        study = storage.create_new_study([], f"study-{len(storage.get_all_studies())}")
        storage.create_new_trial(study)


@pytest.mark.parametrize(
    "order", [(use_ours, use_optunas), (use_optunas, use_ours)], ids=["ours first", "optuna's first"]
)
def test_both_live_in_one_database_in_either_order(
    database_url: str, order: tuple[Callable[[str], None], ...]
) -> None:
    for use in (*order, *order):
        use(database_url)
    with closing(open_store(database_url)) as store, optuna_storage(database_url) as storage:
        assert len(store.trials(STUDY)) == 2
        assert len(storage.get_all_studies()) == 2
        assert storage.get_current_version() == storage.get_head_version()
    with connected(database_url) as connection:
        assert _version(connection, VERSION_TABLE) == NEWEST_REVISION
        _assert_agrees(connection)


@pytest.mark.parametrize("optuna_first", [True, False])
def test_an_older_optuna_is_upgraded_beside_ours(database_url: str, optuna_first: bool) -> None:
    for use in (use_optunas, use_ours) if optuna_first else (use_ours, use_optunas):
        use(database_url)
    with connected(database_url) as connection:
        # As Optuna 3.1 left it.
        connection.execute(text("DROP INDEX ix_trials_study_id"))
        connection.execute(text("UPDATE alembic_version SET version_num = 'v3.0.0.d'"))
    use_ours(database_url)
    storage = RDBStorage(parse_storage_url(database_url).url, skip_compatibility_check=True)
    storage.upgrade()
    assert storage.get_current_version() == storage.get_head_version()
    storage.engine.dispose()
    with closing(open_store(database_url)) as store:
        assert len(store.trials(STUDY)) == 2
    with connected(database_url) as connection:
        assert "trials_study_id_key" in {index["name"] for index in inspect(connection).get_indexes("trials")}
        _assert_agrees(connection)


def test_a_difference_between_tables_and_migrations_would_be_seen(sqlite_url: str) -> None:
    open_store(sqlite_url).close()
    with connected(sqlite_url) as connection:
        connection.execute(text("ALTER TABLE advisor_trial ADD COLUMN extra INTEGER"))
        connection.execute(text("CREATE TABLE others (id INTEGER)"))
        found = _differences(connection)
    assert len(found) == 1
    assert "extra" in str(found)


def test_every_table_is_recognised_as_ours() -> None:
    assert all(name.startswith(PREFIX) for name in metadata.tables)


def test_the_newest_revision_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "advisor.storage:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [NEWEST_REVISION]


def test_migrations_are_packaged() -> None:
    folders = {path.parent for path in Path(migrations.__file__).parent.rglob("*.py")}
    assert len(folders) == 2
    assert all((folder / "__init__.py").exists() for folder in folders), "only packages get into the wheel"


def first_measurement(batch_size: int) -> BatchMeasurement:
    """The sample as the first schema kept it: what was measured later has no value."""
    kept = ("outcome", "detail", "warm_up_blocks", "blocks", "compile_s")
    measured = samples.measurement(batch_size)
    return BatchMeasurement(batch_size, **{name: getattr(measured, name) for name in kept})


def first_advice() -> Advice:
    """The sample without the verdict, which came later."""
    advice = samples.advice()
    throughput = replace(advice.throughput, bottleneck=None, diagnosis=None, comparisons=())
    return replace(advice, throughput=throughput)


def test_a_database_of_the_first_schema_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((ASSETS / "database_0001.sql").read_text())
    with closing(open_store(f"sqlite:///{path}")) as store:
        (run,) = store.latest_measurements("digits")
        assert run.measurements == (first_measurement(8), first_measurement(16))
        (study,) = store.studies()
        assert (study.settings, study.note) == (samples.study().settings, "found 0.97 at trial 0")
        complete, running = store.trials(STUDY)
        assert complete.curve == running.curve == (samples.point(10), samples.point(20))
        assert (complete.state, complete.checkpoint) == (TrialState.COMPLETE, "trial-0.npz")
        assert (running.state, running.owner) == (TrialState.RUNNING, "elsewhere:1/17/3.50")
        assert list(store.descriptions()) == [samples.description("digits")]
        assert store.latest_advice("digits") == first_advice()


def test_sqlite_is_set_up_for_several_processes(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    with store._database.read() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 60_000, "foreign_keys": 1}
    store.close()


def test_no_transaction_stays_open_between_calls(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        store.open_study(samples.study())
        store.trials(STUDY)
        path = sqlite_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("ROLLBACK")
            # A checkpoint that moves all pages needs every reader gone.
            busy, pages, moved = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            assert (busy, pages, moved) == (0, 0, 0)


def _version(connection: Connection, table: str) -> str | None:
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar()


def _differences(connection: Connection) -> list[object]:
    options = {"include_name": is_ours, "version_table": VERSION_TABLE, "compare_type": True}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, metadata))


def _assert_agrees(connection: Connection) -> None:
    assert _differences(connection) == []
