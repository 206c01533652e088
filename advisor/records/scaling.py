"""Steps to target against batch size."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from advisor.records.intervals import Interval
from advisor.records.search_space import HyperparameterValue


@dataclass(frozen=True)
class Crossing:
    """When a curve first met the target.

    ``steps`` is interpolated between ``low``, the last evaluation that did not meet it, and ``high``, the
    first that did. A curve that never met it has ``steps`` and ``high`` None and is right-censored at
    ``low``.
    """

    steps: float | None
    low: float
    high: float | None

    @property
    def censored(self) -> bool:
        """Whether the target was not reached."""
        return self.steps is None


@dataclass(frozen=True)
class Observation:
    """One fresh-seed run of the selected hyperparameters at one batch size."""

    batch_size: int
    crossing: Crossing


@dataclass(frozen=True)
class SearchUncertainty:
    """What the search at one batch size left open.

    ``log_slack`` is how much lower the logarithm of steps to target may be at a learning rate inside the
    final bracket than at the selected one (0 where nothing is open).
    """

    batch_size: int
    log_slack: float


class FitOutcome(StrEnum):
    """What the fit can say; the value is the sentence that the user reads."""

    OK = "The tried batch sizes show both perfect scaling and diminishing returns."
    LOWER_BOUND = (
        "Steps to target still fall in proportion at the largest batch sizes tried: "
        "the critical batch size is a lower bound."
    )
    UPPER_BOUND = (
        "Already the smallest batch sizes tried show no perfect scaling: "
        "the critical batch size is an upper bound."
    )
    INSUFFICIENT = "Too few batch sizes reached the target to fit a curve: at least three are needed."
    NOT_HYPERBOLIC = (
        "Steps to target do not follow the expected curve, so the critical batch size is not trusted."
    )


@dataclass(frozen=True)
class ScalingFit:
    """Fit of S(B) = S_min (1 + (B_c / B)^q)^(1/q), with intervals.

    ``critical_batch_size`` is where examples to target exceed their minimum by ``overhead``;
    ``half_efficiency_batch_size`` where they are twice the minimum; ``maximum_useful_batch_size`` where
    steps exceed their minimum by a tenth. ``extrapolated`` names those that lie outside the tried range.
    ``draws`` are bootstrap draws of (S_min, B_c, q). All intervals are None where ``outcome`` is
    ``INSUFFICIENT``.
    """

    outcome: FitOutcome
    overhead: float
    min_steps: Interval | None = None
    min_examples: Interval | None = None
    critical_batch_size: Interval | None = None
    half_efficiency_batch_size: Interval | None = None
    maximum_useful_batch_size: Interval | None = None
    sharpness: float | None = None
    residual_log_rms: float | None = None
    extrapolated: tuple[str, ...] = ()
    estimate: tuple[float, float, float] | None = None
    draws: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class BatchSizeResult:
    """What the search and the fresh seeds found at one batch size.

    ``steps`` is the geometric mean of the fresh-seed runs that reached the target, None where more of
    them failed than reached it; ``steps_interval`` counts seeds and what the search left open.
    """

    batch_size: int
    best: Mapping[str, HyperparameterValue] | None
    at_edge: bool
    trials: int
    infeasible: int
    observations: tuple[Observation, ...]
    steps: float | None
    steps_interval: Interval | None
    censored: bool
    log_slack: float

    @property
    def crossings(self) -> tuple[Crossing, ...]:
        """When each of the fresh-seed runs met the target."""
        return tuple(observation.crossing for observation in self.observations)
