"""The advice, and everything that it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from advisor.records.description import WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.noise_scale import NoiseScale
from advisor.records.scaling import BatchSizeResult, ScalingFit


class Objective(StrEnum):
    """What the recommended batch size is best at."""

    TIME = "time"
    COST = "cost"
    BALANCED = "balanced"


@dataclass(frozen=True)
class Prices:
    """What a device-hour costs, and what a change of the batch size costs once; None where nobody said.

    ``upfront_cost`` is that of changing to the recommended batch size from any other, ``upfront_costs`` that
    of changing to the batch sizes named; both are in ``currency``.
    """

    price_per_device_hour: float | None = None
    currency: str = "USD"
    power_w: float | None = None
    upfront_cost: float | None = None
    upfront_costs: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    """What a user wants of one training to the target.

    ``deadline_s`` bounds its time and ``max_cost`` its money; None is no limit. A batch size is within them
    where the upper end of its interval is. ``objective`` None is cost under a deadline alone, else time.
    """

    deadline_s: float | None = None
    max_cost: float | None = None
    objective: Objective | None = None


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


class Change(StrEnum):
    """What a larger batch size does to the resource consumption of a training to the target."""

    REDUCES = "reduces"
    UNCHANGED = "unchanged"
    INCREASES = "increases"


@dataclass(frozen=True)
class ConsumptionChange:
    """How resource consumption to the target changes from batch size ``smaller`` to ``larger``.

    ``ratio`` is that at ``larger`` over that at ``smaller``.
    """

    change: Change
    smaller: int
    larger: int
    ratio: Interval


@dataclass(frozen=True)
class BreakEven:
    """After how many ``trainings`` a change to ``batch_size``, which costs ``upfront`` once, has paid off.

    ``saving`` is what one training costs less than at batch size ``against``, negative where it costs more;
    it and ``trainings`` are None where that is not known. A change that never pays takes infinitely many.
    """

    batch_size: int
    upfront: float
    against: int | None
    saving: float | None
    trainings: Interval | None


@dataclass(frozen=True)
class Recommendation:
    """One batch size, with its reason; ``stability`` is the share of bootstrap draws that choose it.

    ``unmet`` says which limit of the user nothing was within; it is empty where one was. ``pareto`` are the
    batch sizes that no other is better than in one resource without being worse in another, ascending.
    """

    objective: Objective
    batch_size: int
    time_to_target_s: Interval
    device_hours: Interval
    money: Interval | None
    stability: float
    why: str
    caveats: tuple[str, ...]
    next: str
    unmet: str = ""
    pareto: tuple[int, ...] = ()
    consumption: tuple[ConsumptionChange, ...] = ()
    break_even: tuple[BreakEven, ...] = ()


@dataclass(frozen=True)
class RuleOfThumb:
    """The largest batch size that the hardware supports, from ``throughput`` alone: no training was done."""

    throughput: Throughput
    batch_size: int
    why: str
    caveats: tuple[str, ...]
    next: str


@dataclass(frozen=True)
class Spent:
    """What the advisor used up: training and evaluation together in ``wall_s``.

    ``examples`` are those trained on; each of the ``evaluations`` takes the validation split once.
    """

    examples: int = 0
    steps: int = 0
    trials: int = 0
    wall_s: float = 0.0
    evaluations: int = 0


@dataclass(frozen=True)
class ExpectedSpending:
    """What the trainings still to come will use as far as can be told; ``basis`` says what that rests on."""

    trials: int
    examples: int
    seconds: float
    device_hours: float
    money: float | None
    basis: str


@dataclass(frozen=True)
class SpendingPlan:
    """What a search may use, told before it starts: upper bounds, and beside them what is ``expected``."""

    batch_sizes: tuple[int, ...]
    trials: int
    examples: int
    seconds: float
    device_hours: float
    money: float | None
    currency: str
    already_recorded_trials: int
    expected: ExpectedSpending | None = None


@dataclass(frozen=True)
class Advice:
    """The whole answer of ``advisor recommend``; ``further`` says what one more batch size would bring."""

    description: WorkloadDescription
    throughput: Throughput
    prices: Prices
    results: tuple[BatchSizeResult, ...]
    fit: ScalingFit
    costs: tuple[ResourceCost, ...]
    answers: Answers
    recommendation: Recommendation | None
    spent: Spent
    noise_scale: NoiseScale | None = None
    further: str = ""
