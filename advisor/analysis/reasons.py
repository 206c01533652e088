"""Why a batch size was chosen, in plain sentences."""

from dataclasses import dataclass

from advisor.analysis.limits import kept_sentence, within
from advisor.analysis.quantities import count, duration, number
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Objective, ResourceCost, Wish
from advisor.records.scaling import BatchSizeResult, ScalingFit


@dataclass(frozen=True)
class Choice:
    """A chosen batch size and the evidence that it was chosen from; ``costs`` ascend."""

    target: str
    objective: Objective
    currency: str
    throughput: Throughput
    results: tuple[BatchSizeResult, ...]
    fit: ScalingFit
    costs: tuple[ResourceCost, ...]
    chosen: ResourceCost
    stability: float
    wish: Wish
    unmet: str
    pareto: tuple[int, ...]

    @property
    def result(self) -> BatchSizeResult | None:
        """What the search found at the chosen batch size, None where it was not tried."""
        found = (result for result in self.results if result.batch_size == self.chosen.batch_size)
        return next(found, None)


def why(choice: Choice) -> str:
    """Say what the chosen batch size takes, whether that is within the limits, and what its neighbours take.

    Where nothing is within the limits, that alone is said.
    """
    if choice.unmet:
        return choice.unmet
    source = "by the fitted curve in" if choice.chosen.interpolated else "in"
    first = (
        f"Batch size {choice.chosen.batch_size:,} reaches {choice.target} {source} about "
        f"{_product(choice.chosen)} of training{_spent(choice)}."
    )
    index = choice.costs.index(choice.chosen)
    larger = choice.costs[index + 1] if index + 1 < len(choice.costs) else None
    smaller = choice.costs[index - 1] if index else None
    above, below = _neighbour("larger", larger, choice), _neighbour("smaller", smaller, choice)
    neighbours = f"{above[0].upper()}{above[1:]}; {below}."
    kept = kept_sentence(choice.chosen, choice.wish, choice.currency)
    return " ".join(filter(None, (first, kept, neighbours)))


def _neighbour(direction: str, other: ResourceCost | None, choice: Choice) -> str:
    if other is None:
        return f"no {direction} batch size is known to reach the target"
    return f"the next {direction}, {other.batch_size:,}, takes {_product(other)}: {_compared(other, choice)}"


def _compared(other: ResourceCost, choice: Choice) -> str:
    chosen = choice.chosen
    if other.time_to_target_s.estimate <= chosen.time_to_target_s.estimate:
        left_out = not within([other], choice.wish)
        return "no slower, but not within the limits" if left_out else "not faster by more than noise"
    if other.time_per_step_s.estimate < chosen.time_per_step_s.estimate:
        return "shorter steps, but more of them"
    why = "no fewer steps, and none of them shorter"
    if other.steps.estimate < chosen.steps.estimate:
        why = "fewer steps, but each takes longer"
    return f"{why}, so there is no reason to use it" if other.batch_size > chosen.batch_size else why


def _product(cost: ResourceCost) -> str:
    return (
        f"{count(cost.steps.estimate)} steps × {duration(cost.time_per_step_s.estimate)} = "
        f"{duration(cost.time_to_target_s.estimate)}"
    )


def _spent(choice: Choice) -> str:
    if choice.objective is Objective.TIME and choice.wish.deadline_s is None and choice.wish.max_cost is None:
        return ""
    money, hours = choice.chosen.money, choice.chosen.device_hours
    spent = f"{number(hours.estimate)} device-hours"
    if money is not None:
        spent = f"{number(money.estimate)} {choice.currency}"
    return f" and {spent}{_trade_off(choice)}"


def _trade_off(choice: Choice) -> str:
    if len(choice.pareto) == 1:
        return " (on the same devices at one price the fastest is the cheapest)"
    balanced = choice.objective is Objective.BALANCED
    return " (the least product of time and cost)" if balanced else ""
