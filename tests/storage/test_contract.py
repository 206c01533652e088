"""The contract of the store, on the one in memory and on both kinds of database."""

from collections.abc import Callable, Iterator

import pytest

from advisor.storage.store import SqlStore, open_store
from advisor.storage.tables import metadata
from advisor.workflows.ports import Store
from tests.contracts.store import StoreContract
from tests.fakes.memory_store import MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> Iterator[SqlStore]:
    """Yield a store that many tests use one after another."""
    store = open_store(new_database(request.param))
    yield store
    store.close()


class TestSqlStore(StoreContract):
    @pytest.fixture
    def store(self, shared: SqlStore) -> Iterator[Store]:
        yield shared
        with shared._database.write() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
