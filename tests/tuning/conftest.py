"""The board's database, shared by the tests of a file."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from advisor.tuning.board import open_board
from tests.tuning.optuna_view import optuna_storage
from tests.tuning.shared import SharedDatabase


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> Iterator[SharedDatabase]:
    url = new_database(getattr(request, "param", "sqlite"))
    with closing(open_board(url)) as board, optuna_storage(url) as storage:
        yield SharedDatabase(url, board, storage)


@pytest.fixture
def empty(shared: SharedDatabase) -> Iterator[SharedDatabase]:
    """Yield the shared database without studies."""
    yield shared
    shared.clear()
