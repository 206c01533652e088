"""Databases that cannot be used: each is told in a sentence, by both rooms that open one."""

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from advisor.errors import StorageError
from advisor.records.description import Configuration
from advisor.records.storage_url import parse_storage_url
from advisor.storage import database
from advisor.storage.store import SqlStore, open_store
from advisor.tuning.board import open_board
from tests.conftest import PASSWORD
from tests.contracts import samples

Opener = Callable[[str], object]
both_rooms = pytest.mark.parametrize("opener", [open_store, open_board], ids=["store", "board"])

OPENERS: dict[Opener, str] = {open_store: "advisor.storage.store", open_board: "advisor.tuning.board"}


@both_rooms
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "not the URL of a database"),
        ("advisor.db", "not the URL of a database"),
        ("mysql://user:open-sesame@host/name", "mysql://user:***@host/name"),
        ("postgres://user:open-sesame@host/name", "postgresql://USER"),
        ("sqlite+aiosqlite:///advisor.db", "sqlite:///FILE"),
        ("sqlite://", "in memory"),
        ("sqlite:///", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite://advisor.db", "three slashes"),
        ("sqlite:///file:advisor?mode=memory&uri=true", "without options"),
    ],
)
def test_another_kind_of_url_is_refused(opener: Opener, url: str, said: str) -> None:
    message = _refusal(opener, url)
    assert said in message
    assert PASSWORD not in message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///some file.db", "sqlite:///some file.db"),
        ("sqlite+pysqlite:////srv/advisor.db", "sqlite:////srv/advisor.db"),
        ("postgresql://me:a@b:c/d#e?f@host:5432/name?password=g", "postgresql://me:***@host:5432/name"),
        ("postgresql+psycopg://me@host/name", "postgresql+psycopg://me@host/name"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert str(parse_storage_url(url)) == shown


def test_plain_postgresql_means_psycopg_3() -> None:
    assert parse_storage_url("postgresql://me@host/name").url == "postgresql+psycopg://me@host/name"


@both_rooms
def test_a_missing_directory_is_told(opener: Opener, tmp_path: Path) -> None:
    message = _refusal(opener, f"sqlite:///{tmp_path}/nowhere/advisor.db")
    assert f"{tmp_path}/nowhere/advisor.db" in message
    assert "cannot be opened. Create its directory" in message


@both_rooms
def test_another_kind_of_file_is_told(opener: Opener, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to be read as one " * 100)
    assert "another kind of file" in _refusal(opener, f"sqlite:///{path}")
    assert path.read_text().startswith("not a database")


@both_rooms
def test_a_directory_is_no_database(opener: Opener, tmp_path: Path) -> None:
    assert "is a folder. Name a file, as in" in _refusal(opener, f"sqlite:///{tmp_path}")


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """Yield a directory that everybody may enter and only its owner may write."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_an_unwritable_directory_is_told(public_directory: Path) -> None:
    public_directory.chmod(0o555)
    said = _said_to_a_stranger(open_store, f"sqlite:///{public_directory}/advisor.db")
    assert "cannot be opened" in said
    assert "writable" in said


@both_rooms
def test_an_unwritable_file_is_told(opener: Opener, public_directory: Path) -> None:
    path = public_directory / "advisor.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE others (id INTEGER)")
    path.chmod(0o444)
    public_directory.chmod(0o555)
    said = _said_to_a_stranger(opener, f"sqlite:///{path}")
    assert "cannot be written" in said or "cannot be opened" in said
    assert "writable" in said


def test_a_database_that_another_program_holds_is_told(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(sqlite_url).close()
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    with closing(open_store(sqlite_url)) as store:
        path = sqlite_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="held by another program"):
                store.open_study(samples.study())
            other.execute("ROLLBACK")
        store.open_study(samples.study())


def test_a_newer_schema_is_refused_and_left_alone(database_url: str) -> None:
    open_store(database_url).close()
    _run(database_url, "UPDATE advisor_alembic_version SET version_num = '9999'")
    message = _refusal(open_store, database_url)
    assert "newer version" in message
    assert "9999" in message
    assert "pip install --upgrade batch-advisor" in message
    assert _run(database_url, "SELECT version_num FROM advisor_alembic_version") == "9999"


def test_tables_of_another_program_are_refused_and_left_alone(database_url: str) -> None:
    _run(database_url, "CREATE TABLE advisor_trial (mine INTEGER)")
    message = _refusal(open_store, database_url)
    assert "another program" in message
    assert "advisor_trial" in message
    assert _run(database_url, "SELECT count(mine) FROM advisor_trial") == 0


@pytest.mark.parametrize(
    "columns",
    ["alembic_version (version_num TEXT)", "alembic_version (mine INTEGER)", "studies (mine INTEGER)"],
)
def test_tables_of_another_program_under_optunas_names_are_refused(columns: str, database_url: str) -> None:
    _run(database_url, f"CREATE TABLE {columns}")
    before = _tables(database_url)
    message = _refusal(open_store, database_url)
    assert f"another program under names that are needed here ({columns.partition(' ')[0]})" in message
    assert _tables(database_url) == before


def test_a_version_table_of_another_program_is_no_mark_of_optuna(database_url: str) -> None:
    _run(database_url, "CREATE TABLE version_info (release TEXT)")
    assert "(version_info)" in _refusal(open_store, database_url)


def test_an_emptied_version_is_told_as_damage(database_url: str) -> None:
    open_store(database_url).close()
    _run(database_url, "DELETE FROM advisor_alembic_version")
    message = _refusal(open_store, database_url)
    assert "is damaged: its table advisor_alembic_version is empty. Restore it from a copy" in message


def test_a_record_of_an_unknown_kind_is_told(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        study = store.open_study(samples.study()).name
        store.start_trial(study, 0, samples.plan())
        _run(database_url, "UPDATE advisor_trial SET state = 'PAUSED'")
        with pytest.raises(StorageError, match=r"\(trial\) .* another version"):
            store.trials(study)


DAMAGED = {
    "advisor_measurement.measurement": ("measurement run", lambda store: store.latest_measurements("digits")),
    "advisor_measurement_run.environment": (
        "measurement run",
        lambda store: store.latest_measurements("digits"),
    ),
    "advisor_study.study": ("study", lambda store: store.studies()),
    "advisor_trial.plan": ("trial", lambda store: store.trials(samples.study().name)),
    "advisor_curve_point.point": ("trial", lambda store: store.trials(samples.study().name)),
    "advisor_description.document": ("workload description", lambda store: store.descriptions()),
    "advisor_advice.document": ("advice", lambda store: store.latest_advice("digits")),
}


@pytest.mark.parametrize("value", ["'{\"cut off'", "X'ff00'", "5", "'[]'", "'\"text\"'", "'null'"])
@pytest.mark.parametrize("column", list(DAMAGED))
def test_a_damaged_record_is_told(column: str, value: str, sqlite_url: str) -> None:
    record, read = DAMAGED[column]
    with closing(open_store(sqlite_url)) as store:
        _fill(store)
        read(store)
        table, _, name = column.partition(".")
        _run(sqlite_url, f"UPDATE {table} SET {name} = {value}")
        with pytest.raises(StorageError) as raised:
            read(store)
    message = str(raised.value)
    assert message.startswith(f"The database {sqlite_url} holds a record ({record}) that is damaged")
    assert "Restore the database from a copy" in message


def test_other_damage_to_a_trial_is_told(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        _fill(store)
        study = samples.study().name
        _run(sqlite_url, "UPDATE advisor_trial SET state = 'PAUSED'")
        with pytest.raises(StorageError, match=r"\(trial state\) that is damaged"):
            store.record_point(study, 0, samples.point(20))
        _run(sqlite_url, "UPDATE advisor_trial SET state = 'RUNNING', owner = 'nobody'")
        with pytest.raises(StorageError, match=r"\(the owner of a trial\) that is damaged"):
            store.trials(study)


@both_rooms
def test_a_missing_driver_is_named(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = _refusal(opener, f"postgresql://user:{PASSWORD}@127.0.0.1/name")
    assert "install the postgres extra (pip install '.[postgres]' in" in message.lower()


@both_rooms
def test_a_malformed_postgresql_url_is_told(opener: Opener) -> None:
    message = _refusal(opener, f"postgresql://user:{PASSWORD}@host:port/name")
    assert "postgresql://user:***@host:port/name" in message
    assert PASSWORD not in message


@both_rooms
def test_a_server_that_does_not_answer_is_told(opener: Opener) -> None:
    message = _refusal(opener, f"postgresql://user:{PASSWORD}@127.0.0.1:1/name")
    assert "refused the connection. Start its server, or correct the host and the port" in message
    assert PASSWORD not in message


def test_tables_and_columns_that_are_missing_are_told(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        _run(database_url, "ALTER TABLE advisor_study DROP COLUMN note")
        with pytest.raises(StorageError, match=r"lacks a table or a column .* Restore it from a copy"):
            store.studies()
        with pytest.raises(StorageError, match="lacks a table or a column"):
            store.open_study(samples.study())
        _run(database_url, "DROP TABLE advisor_advice")
        with pytest.raises(StorageError, match="lacks a table or a column"):
            store.latest_advice("digits")


def test_text_that_is_damaged_is_told(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as store:
        store.open_study(samples.study())
        _run(sqlite_url, "UPDATE advisor_study SET note = CAST(X'ff' AS TEXT)")
        with pytest.raises(StorageError, match="holds text that is damaged"):
            store.studies()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("connection timeout expired", "did not answer. Start its server"),
        ("failed to resolve host 'nowhere': Name or service not known", "has an unknown host. Correct it"),
        ('could not translate host name "nowhere" to address', "has an unknown host. Correct it"),
        ("something\n  else", "cannot be used: something else"),
    ],
)
def test_what_a_driver_says_is_explained(said: str, told: str) -> None:
    assert told in parse_storage_url("postgresql://me@host/name").explained(said)


@both_rooms
def test_a_wrong_password_is_not_repeated(opener: Opener, postgres_url: str) -> None:
    message = _refusal(opener, postgres_url.replace(PASSWORD, "Rumpelstiltskin"))
    assert "password authentication failed" in message
    assert "Rumpelstiltskin" not in message


@both_rooms
def test_an_unknown_database_is_told(opener: Opener, postgres_server: str) -> None:
    message = _refusal(opener, f"{postgres_server}/nowhere")
    assert 'database "nowhere" does not exist' in message
    assert PASSWORD not in message


def test_connections_that_were_dropped_are_made_anew(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store, closing(open_board(postgres_url)) as board:
        store.open_study(samples.study())
        board.open(samples.study(), {}, 0)
        _run(
            postgres_url,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        assert len(store.studies()) == 1
        assert board.ask(samples.study().name) == (0, {})


@both_rooms
def test_any_name_of_a_file_will_do(opener: Opener, tmp_path: Path) -> None:
    directory = tmp_path / "100% {mine} #1 & more"
    directory.mkdir()
    opened = opener(f"sqlite:///{directory}/ad visor.db")
    opened.close()  # type: ignore[attr-defined]
    assert (directory / "ad visor.db").exists()


def test_a_relative_file_is_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store("sqlite:///advisor.db")) as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.close()
        store.open_study(samples.study())
    assert not list((tmp_path / "elsewhere").iterdir())


def _fill(store: SqlStore) -> None:
    study = store.open_study(samples.study()).name
    store.start_trial(study, 0, samples.plan())
    store.record_point(study, 0, samples.point(10))
    store.save_description(samples.description("digits"))
    store.save_advice(samples.advice())
    measured = [samples.measurement(8), samples.measurement(16)]
    store.add_measurements("digits", samples.FINGERPRINT, Configuration(), {}, measured)


def _tables(url: str) -> list[str]:
    engine = create_engine(parse_storage_url(url).url)
    try:
        return inspect(engine).get_table_names()
    finally:
        engine.dispose()


def _refusal(opener: Opener, url: str) -> str:
    with pytest.raises(StorageError) as raised:
        opener(url)
    message = str(raised.value)
    assert len(message) < 450
    assert "sqlalche.me" not in message
    assert "Traceback" not in message
    return message


def _said_to_a_stranger(opener: Opener, url: str) -> str:
    """Return what a process says that may write no file of ours (root may write any)."""
    with tempfile.TemporaryDirectory() as scratch:
        code = f"""
import os
from advisor.errors import StorageError
from {OPENERS[opener]} import {opener.__name__} as opener
opener("sqlite:///{scratch}/all-modules-are-loaded.db").close()
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    opener({url!r})
except StorageError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(url: str, statement: str) -> object:
    engine = create_engine(parse_storage_url(url).url)
    try:
        with engine.begin() as connection:
            result = connection.execute(text(statement))
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()
