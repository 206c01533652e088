"""Trials, their curves, and the studies that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from advisor.records.description import Configuration
from advisor.records.search_space import HyperparameterValue
from advisor.records.target import Target


class StudyKind(StrEnum):
    """Which question a study answers; the value is part of its name."""

    STEPS_TO_TARGET = "steps-to-target"
    TUNE = "tune"
    COMPARE_AT = "compare-at"
    PILOT = "pilot"


class TrialPurpose(StrEnum):
    """Why a trial was run: to select hyperparameters, or to measure the selected ones with a fresh seed."""

    SELECT = "select"
    MEASURE = "measure"


class TrialState(StrEnum):
    """How a trial stands; one that was far behind the best ones is stopped."""

    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Study:
    """One Optuna study and what it was asked for.

    ``settings`` holds what must not change while the study grows (``max_train_steps``, ranges), as plain
    JSON values; ``command`` and ``revision`` are what reproduces it.
    """

    name: str
    kind: StudyKind
    workload: str
    fingerprint: str
    batch_size: int
    target: Target
    configuration: Configuration
    settings: Mapping[str, object]
    command: str
    revision: str | None = None
    uncommitted_diff: str | None = None
    note: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """The validation metrics after ``step`` optimizer steps, and the mean training loss since the last."""

    step: int
    metrics: Mapping[str, float]
    training_loss: float | None
    train_s: float
    evaluate_s: float


@dataclass(frozen=True)
class TrialPlan:
    """What one trial is to do: train ``max_steps`` optimizer steps with these values and this seed."""

    hyperparameters: Mapping[str, HyperparameterValue]
    seed: int
    purpose: TrialPurpose
    max_steps: int


@dataclass(frozen=True)
class Trial:
    """A trial as recorded; ``reason`` says in words why it ended as it did."""

    number: int
    batch_size: int
    plan: TrialPlan
    state: TrialState
    reason: str
    curve: tuple[CurvePoint, ...]
    checkpoint: str | None = None
    owner: str = ""

    @property
    def steps(self) -> int:
        """Optimizer steps taken up to the last evaluation."""
        return self.curve[-1].step if self.curve else 0

    @property
    def train_s(self) -> float:
        """Seconds spent in optimizer steps."""
        return sum(point.train_s for point in self.curve)

    @property
    def wall_s(self) -> float:
        """Seconds spent in optimizer steps and evaluations."""
        return sum(point.train_s + point.evaluate_s for point in self.curve)


def study_name(workload: str, fingerprint: str, kind: StudyKind, batch_size: int) -> str:
    """Return ``WORKLOAD/FINGERPRINT8/KIND/bN``."""
    return f"{workload}/{fingerprint[:8]}/{kind.value}/b{batch_size}"
