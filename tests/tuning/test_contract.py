"""The contract of the board, on the one in memory and on both kinds of database."""

import pytest

from advisor.tuning.board import OptunaBoard
from advisor.workflows.ports import StudyBoard
from tests.contracts.board import StudyBoardContract
from tests.fakes.memory_board import MemoryBoard
from tests.tuning.shared import SharedDatabase


class TestMemoryBoard(StudyBoardContract):
    @pytest.fixture
    def board(self) -> StudyBoard:
        return MemoryBoard()


@pytest.mark.parametrize("shared", ["sqlite", "postgres"], indirect=True)
class TestOptunaBoard(StudyBoardContract):
    @pytest.fixture
    def board(self, empty: SharedDatabase) -> OptunaBoard:
        return empty.board
