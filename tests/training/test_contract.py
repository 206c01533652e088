from collections.abc import Iterator

import pytest

from advisor.training.keras_session import open_session
from advisor.workflows.ports import TrainingSession
from tests.contracts.session import OpenSession, SessionCase, SessionContract
from tests.training.conftest import DIGITS


class TestKerasSession(SessionContract):
    @pytest.fixture
    def case(self) -> SessionCase:
        return SessionCase(
            batch_size=32,
            steps=20,
            good={"learning_rate": 0.05},
            other={"learning_rate": 0.02, "momentum": 0.5},
            diverging={"learning_rate": 1e4},
        )

    @pytest.fixture
    def session(self, digits: TrainingSession) -> TrainingSession:
        return digits

    @pytest.fixture
    def open_session(self) -> Iterator[OpenSession]:
        yield lambda: open_session(DIGITS)
