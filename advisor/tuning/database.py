"""Optuna's tables in the advisor's database."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage

from advisor.errors import StorageError
from advisor.records.storage_url import BUSY_TIMEOUT_S, CONNECT_TIMEOUT_S, POSTGRES_DRIVER_MISSING, StorageURL

# What a database says to one of several processes that create the same tables at once.
_RACES = ("already exists", "duplicate key", "UNIQUE constraint", "database is locked")
_RACE_ATTEMPTS = 50
_RACE_PAUSE_S = 0.1


def open_tables(url: StorageURL) -> RDBStorage:
    """Return Optuna's storage at ``url``, its tables created where there are none.

    Raises StorageError where the database cannot be reached or was written by another version of Optuna.
    """
    for _ in range(_RACE_ATTEMPTS):
        try:
            return RDBStorage(url.url.replace("{", "{{").replace("}", "}}"), _engine_options(url))
        except ImportError as error:
            raise StorageError(POSTGRES_DRIVER_MISSING) from error
        # SQLAlchemy's own errors come through here, and cannot be named in this room.
        except Exception as error:
            if not any(race in str(error) for race in _RACES):
                raise StorageError(_explained(error, url)) from error
            last = error
            time.sleep(_RACE_PAUSE_S)
    raise StorageError(_explained(last, url)) from last


@contextmanager
def faults_in_words(url: StorageURL) -> Iterator[None]:
    """Turn what Optuna raises about its tables into a StorageError."""
    try:
        yield
    except OptunaError as error:
        raise StorageError(_explained(error, url)) from error
    except KeyError as error:  # as Optuna says that a study or a trial is not there
        raise StorageError(
            f"The study is no longer in the database {url}: it was deleted, perhaps in the dashboard. "
            "Name another with --storage to begin anew."
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from announcing what it does; its own user may have chosen to hear it elsewhere."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)


def _engine_options(url: StorageURL) -> dict[str, Any]:
    if url.sqlite_path is None:
        # A connection may have been dropped while a trial was training: ask before each use.
        return {"pool_pre_ping": True, "connect_args": {"connect_timeout": CONNECT_TIMEOUT_S}}
    path = url.sqlite_path
    return {"creator": lambda: _connect(path)}


def _connect(path: Path) -> sqlite3.Connection:
    # The engine's pool lends a connection to one thread at a time.
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _explained(error: BaseException, url: StorageURL) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return url.explained(str(error))
