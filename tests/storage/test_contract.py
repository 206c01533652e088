"""The contract of the store, on the one in memory and on both kinds of database."""

from collections.abc import Iterator

import pytest

from advisor.storage.store import open_store
from advisor.workflows.ports import Store
from tests.contracts.store import StoreContract
from tests.fakes.memory_store import MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestSqlStore(StoreContract):
    @pytest.fixture
    def store(self, database_url: str) -> Iterator[Store]:
        store = open_store(database_url)
        yield store
        store.close()
