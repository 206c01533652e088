"""TensorFlow for the tests of its room, and sessions that they share."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import cloudpickle
import pytest

from advisor.records.requests import WorkloadReference
from advisor.records.workload import Workload
from advisor.training.keras_session import open_session
from advisor.workflows.ports import TrainingSession

pytest.register_assert_rewrite("tests.contracts.session")

DIGITS = WorkloadReference("advisor.training.digits:workload")
OpenWorkload = Callable[..., TrainingSession]


@pytest.fixture(scope="session")
def digits() -> Iterator[TrainingSession]:
    """Return one session of the bundled digits, described."""
    session = open_session(DIGITS)
    session.describe()
    yield session
    session.close()


@pytest.fixture
def open_workload() -> Iterator[OpenWorkload]:
    """Return a function that opens a session of a workload as the Python API would send it."""
    opened: list[TrainingSession] = []

    def open_it(workload: Workload, **reference: object) -> TrainingSession:
        sent = WorkloadReference(workload.name, pickled=cloudpickle.dumps(workload))
        opened.append(open_session(replace(sent, **reference)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_it
    for session in opened:
        session.close()
