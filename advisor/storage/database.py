"""One engine, short transactions, and the database's faults in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from advisor.errors import StorageError
from advisor.records.storage_url import BUSY_TIMEOUT_S, CONNECT_TIMEOUT_S, POSTGRES_DRIVER_MISSING, StorageURL
from advisor.storage.codec import UnreadableError, from_json, to_json

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
)


class Database:
    """Hands out transactions that have committed, or are undone, when their block ends.

    Nothing is connected before the first of them.
    """

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
        except UnreadableError as error:
            raise StorageError(f"The database {self.url} {error}") from error
        except SQLAlchemyError as error:
            raise StorageError(self.url.explained(str(getattr(error, "orig", None) or error))) from error


def now() -> str:
    """Return the present moment as it is recorded, in universal time."""
    return datetime.now(UTC).isoformat()


def _engine(url: StorageURL) -> Engine:
    options: dict[str, Any] = {"json_serializer": to_json, "json_deserializer": from_json}
    if url.sqlite_path is None:
        return _postgresql_engine(url, options)
    engine = create_engine(
        URL.create("sqlite", database=str(url.sqlite_path)),
        connect_args={"timeout": BUSY_TIMEOUT_S},
        **options,
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql_engine(url: StorageURL, options: dict[str, Any]) -> Engine:
    try:
        # A connection may have been dropped while a trial was training: ask before each use.
        return create_engine(
            url.url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}, **options
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
