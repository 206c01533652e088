"""The advice, and everything that it rests on."""

from dataclasses import dataclass
from enum import StrEnum

from advisor.records.description import WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.scaling import BatchSizeResult, ScalingFit


class Objective(StrEnum):
    """What the recommended batch size is best at."""

    TIME = "time"
    COST = "cost"


@dataclass(frozen=True)
class Prices:
    """What a device-hour costs; None where the user did not say."""

    price_per_device_hour: float | None = None
    currency: str = "USD"
    power_w: float | None = None


@dataclass(frozen=True)
class ResourceCost:
    """Time and resources to the target at one batch size: resource consumption per step × steps."""

    batch_size: int
    steps: Interval
    time_per_step_s: Interval
    time_to_target_s: Interval
    device_hours: Interval
    money: Interval | None
    energy_kwh: Interval | None
    interpolated: bool


@dataclass(frozen=True)
class Answers:
    """Four different batch sizes that are easily confused, and the cheapest; None where unknown."""

    largest_feasible: int | None = None
    fastest_per_example: int | None = None
    critical: float | None = None
    fastest_to_target: int | None = None
    cheapest_to_target: int | None = None


@dataclass(frozen=True)
class Recommendation:
    """One batch size, with its reason; ``stability`` is the share of bootstrap draws that choose it."""

    objective: Objective
    batch_size: int
    time_to_target_s: Interval
    device_hours: Interval
    money: Interval | None
    stability: float
    why: str
    caveats: tuple[str, ...]
    next: str


@dataclass(frozen=True)
class Spent:
    """What the advisor used up: training and evaluation together in ``wall_s``."""

    examples: int = 0
    steps: int = 0
    trials: int = 0
    wall_s: float = 0.0


@dataclass(frozen=True)
class SpendingPlan:
    """What a search may use, told before it starts; ``examples`` and ``seconds`` are upper bounds."""

    batch_sizes: tuple[int, ...]
    trials: int
    examples: int
    seconds: float
    device_hours: float
    money: float | None
    currency: str
    already_recorded_trials: int


@dataclass(frozen=True)
class Advice:
    """The whole answer of ``advisor recommend``."""

    description: WorkloadDescription
    throughput: Throughput
    prices: Prices
    results: tuple[BatchSizeResult, ...]
    fit: ScalingFit
    costs: tuple[ResourceCost, ...]
    answers: Answers
    recommendation: Recommendation | None
    spent: Spent
