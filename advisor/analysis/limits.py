"""A deadline and a largest cost: which batch sizes keep within them, told in words."""

from collections.abc import Iterator, Sequence

from advisor.analysis.pareto import usage_cost
from advisor.analysis.quantities import duration, duration_between, number, percent
from advisor.records.recommendation import Objective, ResourceCost, Wish


def wanted(wish: Wish) -> Objective:
    """Return what to be best at: what was asked for, else cost under a deadline alone, else time."""
    deadline_alone = wish.deadline_s is not None and wish.max_cost is None
    return wish.objective or (Objective.COST if deadline_alone else Objective.TIME)


def within(costs: Sequence[ResourceCost], wish: Wish) -> tuple[ResourceCost, ...]:
    """Return the costs whose intervals end within the limits; one without a price is within no cost."""
    return tuple(cost for cost in costs if _in_time(cost, wish) and _in_money(cost, wish))


def kept_sentence(cost: ResourceCost, wish: Wish, currency: str) -> str:
    """Say how far a cost is within the limits; nothing where there are none."""
    parts = []
    if wish.deadline_s is not None:
        parts.append(f"within {duration(wish.deadline_s)} ({duration(cost.time_to_target_s.high)})")
    if wish.max_cost is not None and cost.money is not None:
        limit = f"{number(float(wish.max_cost))} {currency}"
        parts.append(f"within {limit} ({number(cost.money.high)} {currency})")
    if not parts:
        return ""
    return f"The upper end of its {percent(cost.time_to_target_s.level)} interval is {' and '.join(parts)}."


def unmet_sentence(costs: Sequence[ResourceCost], wish: Wish, currency: str) -> str:
    """Say that nothing is within the limits, and what comes nearest; ``costs`` are not empty."""
    level = percent(costs[0].time_to_target_s.level)
    asked, nearest = " and ".join(_limits(wish, currency)), " and ".join(_nearest(costs, wish, currency))
    return (
        f"No batch size is within {asked} up to the upper end of its {level} interval: {nearest}. Allow "
        "more, choose an easier target, or narrow the intervals with more seeds."
    )


def _in_time(cost: ResourceCost, wish: Wish) -> bool:
    return wish.deadline_s is None or cost.time_to_target_s.high <= wish.deadline_s


def _in_money(cost: ResourceCost, wish: Wish) -> bool:
    return wish.max_cost is None or (cost.money is not None and cost.money.high <= wish.max_cost)


def _limits(wish: Wish, currency: str) -> Iterator[str]:
    if wish.deadline_s is not None:
        yield f"the deadline of {duration(wish.deadline_s)}"
    if wish.max_cost is not None:
        yield f"{number(float(wish.max_cost))} {currency}"


def _nearest(costs: Sequence[ResourceCost], wish: Wish, currency: str) -> Iterator[str]:
    if wish.deadline_s is not None:
        fastest = min(costs, key=lambda cost: cost.time_to_target_s.estimate)
        time_s = fastest.time_to_target_s
        takes = duration_between(time_s.estimate, time_s.low, time_s.high)
        yield f"the fastest found is batch size {fastest.batch_size:,} with {takes}"
    if wish.max_cost is not None:
        cheapest = min(costs, key=lambda cost: usage_cost(cost).estimate)
        spent = usage_cost(cheapest)
        takes = f"{number(spent.estimate)} {currency} ({number(spent.low)}–{number(spent.high)})"
        yield f"the cheapest found is batch size {cheapest.batch_size:,} with {takes}"
