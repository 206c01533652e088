"""What every session promises holds across the border between two processes."""

from collections.abc import Iterator

import pytest

from advisor.execution.local import LocalSessions
from advisor.records.requests import WorkloadReference
from advisor.workflows.ports import TrainingSession
from tests.contracts.session import OpenSession, SessionCase, SessionContract
from tests.execution.processes import SESSIONS

_SLOPES = LocalSessions(f"{SESSIONS}:open_plain", WorkloadReference("slope"))


@pytest.fixture(scope="module")
def slope() -> Iterator[TrainingSession]:
    session = _SLOPES.open()
    yield session
    session.close()


class TestChild(SessionContract):
    @pytest.fixture
    def case(self) -> SessionCase:
        return SessionCase(
            batch_size=8,
            steps=20,
            good={"learning_rate": 0.05},
            other={"learning_rate": 0.02},
            diverging={"learning_rate": 1e4},
        )

    @pytest.fixture
    def session(self, slope: TrainingSession) -> TrainingSession:
        return slope

    @pytest.fixture
    def open_session(self) -> OpenSession:
        return _SLOPES.open
