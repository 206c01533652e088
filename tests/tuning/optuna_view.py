"""Optuna's own view of a database, to look at what the board left there."""

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.storages import RDBStorage

from advisor.records.storage_url import parse_storage_url


@contextmanager
def optuna_storage(url: str) -> Iterator[RDBStorage]:
    """Open a database as a program that knows Optuna alone would."""
    storage = RDBStorage(parse_storage_url(url).url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()
