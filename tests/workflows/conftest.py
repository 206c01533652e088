"""The use cases over the noisy quadratic model, whose answers are known exactly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from advisor.execution.load import LoadWatch
from advisor.records.recommendation import Advice
from advisor.records.requests import RecommendRequest
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Preparation
from advisor.reporting.note import search_note
from advisor.reporting.progress import QuietProgress
from advisor.training.quadratic_session import QuadraticSession, QuadraticSessions, QuadraticSettings
from advisor.workflows.ports import SessionFactory, TrainingSession
from advisor.workflows.recommend import recommend as workflow
from advisor.workflows.tools import Tools
from tests.fakes.memory_board import MemoryBoard
from tests.fakes.memory_store import MemoryStore

Before = Callable[[int, int], None]
"""Called with the batch size and the number of the call before each block; may raise."""


@dataclass
class Heard(QuietProgress):
    """Remembers what was said."""

    said: list[str] = field(default_factory=list)

    def say(self, message: str) -> None:
        self.said.append(message)


class WatchedSession(QuadraticSession):
    """A quadratic session in which ``before`` may fail a call to train."""

    def __init__(self, settings: QuadraticSettings, before: Before, count: list[int]) -> None:
        super().__init__(settings)
        self._before, self._count = before, count
        self._batch_size = 0

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        self._batch_size = batch_size
        return super().reset(batch_size, hyperparameters, seed)

    def train(self, steps: int) -> BlockTiming:
        self._count[0] += 1
        self._before(self._batch_size, self._count[0])
        return super().train(steps)


@dataclass
class WatchedSessions:
    """Opens watched sessions and counts them and their calls."""

    settings: QuadraticSettings
    before: Before = lambda batch_size, call: None
    opened: int = 0
    calls: list[int] = field(default_factory=lambda: [0])

    def open(self) -> TrainingSession:
        self.opened += 1
        return WatchedSession(self.settings, self.before, self.calls)


def tools_for(sessions: SessionFactory, store: MemoryStore | None = None) -> Tools:
    """Return tools with a memory of their own unless one is given."""
    return Tools(sessions, store or MemoryStore(), MemoryBoard(), Heard(), LoadWatch())


def recommend(tools: Tools, request: RecommendRequest) -> Advice:
    """Recommend as the command does."""
    return workflow(tools, request, search_note)


def said(tools: Tools) -> Sequence[str]:
    assert isinstance(tools.progress, Heard)
    return tools.progress.said


@pytest.fixture
def quadratic() -> Tools:
    return tools_for(QuadraticSessions(QuadraticSettings()))
