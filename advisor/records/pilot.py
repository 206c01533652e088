"""A target that a short tuned run proposes."""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.records.description import Configuration
from advisor.records.recommendation import Spent
from advisor.records.search_space import HyperparameterValue
from advisor.records.target import Target


@dataclass(frozen=True)
class PilotSeed:
    """One training with a fresh seed.

    ``late_value`` is the metric at two thirds of the training, ``best_value`` its best anywhere; ``steps``
    and ``time_s`` (training alone) are what the proposed target took.
    """

    seed: int
    late_value: float
    best_value: float
    steps: float
    time_s: float


@dataclass(frozen=True)
class Pilot:
    """The proposed target, and the trainings of ``max_steps`` steps (``epochs`` epochs) that it rests on.

    ``initial_value`` is the metric of the untrained model.
    """

    workload: str
    configuration: Configuration
    target: Target
    batch_size: int
    max_steps: int
    epochs: float
    best: Mapping[str, HyperparameterValue]
    seeds: tuple[PilotSeed, ...]
    initial_value: float
    rule: str
    caveats: tuple[str, ...]
    spent: Spent
    next: str

    @property
    def steps(self) -> float:
        """Steps to the proposed target, the mean over the seeds."""
        return sum(seed.steps for seed in self.seeds) / len(self.seeds)

    @property
    def time_s(self) -> float:
        """Training time (s) to the proposed target, the mean over the seeds."""
        return sum(seed.time_s for seed in self.seeds) / len(self.seeds)
