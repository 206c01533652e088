"""One engine, short transactions, and the database's faults in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from advisor.errors import StorageError
from advisor.records.storage_url import POSTGRES_DRIVER_MISSING, StorageURL, parse_storage_url
from advisor.storage.codec import from_json, to_json

_BUSY_TIMEOUT_S = 60
_CONNECT_TIMEOUT_S = 10

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
)

# What a driver says, in part, and what that means to the user. The first that fits is told.
_MEANINGS = (
    (
        "unable to open database file",
        "cannot be opened. Its directory must be writable; name another with --storage.",
    ),
    (
        "readonly database",
        "cannot be written. The file and its directory must be writable; name another with --storage.",
    ),
    (
        "file is not a database",
        "is another kind of file, not a SQLite database. Name another with --storage.",
    ),
    (
        "malformed",
        "is damaged. Restore it from a copy, or name another with --storage.",
    ),
    (
        "database is locked",
        f"was held by another program for more than {_BUSY_TIMEOUT_S} s. End that one and run this again.",
    ),
    (
        "disk is full",
        "cannot grow because its disk is full. Free some space and run this again.",
    ),
)


class Database:
    """Hands out transactions that have committed, or are undone, when their block ends."""

    def __init__(self, url: StorageURL) -> None:
        self.url = url
        self._engine = _engine(url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the database."""
        with self._faults_in_words(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that no other writer can come between (SQLite)."""
        writing = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        with self._faults_in_words(), writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the connections; they are opened anew where the database is used again."""
        self._engine.dispose()

    @contextmanager
    def _faults_in_words(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise StorageError(_explained(error, self.url)) from error


def open_database(text: str) -> Database:
    """Return the database that the URL ``text`` names, without connecting to it."""
    url = parse_storage_url(text)
    if url.sqlite_path is not None and not url.sqlite_path.parent.is_dir():
        raise StorageError(
            f"The database {url} cannot be made, since there is no directory {url.sqlite_path.parent}. "
            "Create it, or name another with --storage."
        )
    return Database(url)


def now() -> str:
    """Return the present moment as it is recorded, in universal time."""
    return datetime.now(UTC).isoformat()


def _engine(url: StorageURL) -> Engine:
    options: dict[str, Any] = {"json_serializer": to_json, "json_deserializer": from_json}
    if url.sqlite_path is None:
        return _postgresql_engine(url, options)
    engine = create_engine(
        URL.create("sqlite", database=str(url.sqlite_path)),
        connect_args={"timeout": _BUSY_TIMEOUT_S},
        **options,
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql_engine(url: StorageURL, options: dict[str, Any]) -> Engine:
    try:
        # A connection may have been dropped while a trial was training: ask before each use.
        return create_engine(
            url.url, pool_pre_ping=True, connect_args={"connect_timeout": _CONNECT_TIMEOUT_S}, **options
        )
    except ImportError as error:
        raise StorageError(POSTGRES_DRIVER_MISSING) from error
    except (ArgumentError, ValueError) as error:
        raise StorageError(
            f"The database URL {url} cannot be understood. "
            "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters percent-encoded."
        ) from error


def _set_up_sqlite(connection: Any, _: object) -> None:
    # The driver's own habit of opening transactions leaves out DDL and reads: ours are opened below.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _explained(error: SQLAlchemyError, url: StorageURL) -> str:
    said = " ".join(str(getattr(error, "orig", None) or error).split())
    for piece, meaning in _MEANINGS:
        if piece in said:
            return f"The database {url} {meaning}"
    return f"The database {url} did not do what it was asked: {said[:300]}"
