"""The answer of ``advisor tune``."""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.records.recommendation import Spent
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.trials import Study


@dataclass(frozen=True)
class BestTrial:
    """The trial with the best validation result, and the step at which its checkpoint was taken."""

    number: int
    hyperparameters: Mapping[str, HyperparameterValue]
    value: float
    step: int
    checkpoint: str | None


@dataclass(frozen=True)
class HealthCheck:
    """One look at a finished study: a name, whether it is well, and the sentence that the user reads."""

    check: str
    outcome: str
    sentence: str


@dataclass(frozen=True)
class TuningResult:
    """A study after the last trial that was asked for."""

    study: Study
    search_space: SearchSpace
    trials: Mapping[str, int]
    best: BestTrial | None
    health: tuple[HealthCheck, ...]
    spent: Spent
    next: str
