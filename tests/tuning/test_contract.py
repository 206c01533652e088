"""The contract of the board, on the one in memory and on both kinds of database."""

from collections.abc import Callable, Iterator

import pytest
from optuna.storages import RDBStorage

from advisor.tuning.board import OptunaBoard, open_board
from advisor.workflows.ports import StudyBoard
from tests.contracts.board import StudyBoardContract
from tests.fakes.memory_board import MemoryBoard
from tests.tuning.optuna_view import optuna_storage


class TestMemoryBoard(StudyBoardContract):
    @pytest.fixture
    def board(self) -> StudyBoard:
        return MemoryBoard()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(
    request: pytest.FixtureRequest, new_database: Callable[[str], str]
) -> Iterator[tuple[OptunaBoard, RDBStorage]]:
    """Yield a board that many tests use one after another, and Optuna's view of its database."""
    url = new_database(request.param)
    board = open_board(url)
    with optuna_storage(url) as storage:
        yield board, storage
    board.close()


class TestOptunaBoard(StudyBoardContract):
    @pytest.fixture
    def board(self, shared: tuple[OptunaBoard, RDBStorage]) -> Iterator[StudyBoard]:
        board, storage = shared
        yield board
        for study in storage.get_all_studies():
            storage.delete_study(study._study_id)
