"""Several resources at once: which batch sizes are worth a look, and the one that balances them."""

import math
from collections.abc import Sequence

from advisor.records.intervals import Interval
from advisor.records.recommendation import ResourceCost

_EQUAL = 1e-9
"""Relative difference below which two amounts, whose rounding may differ, are the same."""


def usage_cost(cost: ResourceCost) -> Interval:
    """Return money, or device-hours where there is no price."""
    return cost.money or cost.device_hours


def balance(cost: ResourceCost) -> Interval:
    """Return the geometric mean of time to target and usage cost.

    It ranks as their product does, which as energy × delay is the usual compromise between speed and
    consumption (Gonzalez and Horowitz 1996, IEEE J. Solid-State Circuits 31:1277); the unit of either does
    not matter, and so nor do their minima. The root makes a per cent of it a per cent of both. Both come
    from the same steps, so their bounds go together.
    """
    time_s, usage = cost.time_to_target_s, usage_cost(cost)
    return Interval(
        math.sqrt(time_s.estimate * usage.estimate),
        math.sqrt(time_s.low * usage.low),
        math.sqrt(time_s.high * usage.high),
        time_s.level,
    )


def pareto_set(costs: Sequence[ResourceCost]) -> tuple[ResourceCost, ...]:
    """Return the costs that no other dominates, in their order.

    One dominates another where it takes no more of any resource and less of one: time to target, usage
    cost, and energy where it is known. Of costs that are equal in all the first stays. On the same devices
    at one price all three are proportional, and one cost is left.
    """
    kept: list[ResourceCost] = []
    for cost in costs:
        if any(_covers(other, cost) for other in kept):
            continue
        kept = [other for other in kept if not _covers(cost, other)]
        kept.append(cost)
    return tuple(kept)


def _covers(one: ResourceCost, other: ResourceCost) -> bool:
    """Return whether ``one`` takes no more than ``other`` of any resource that is known of both."""
    pairs = zip(_resources(one), _resources(other), strict=True)
    return all(
        mine.estimate <= theirs.estimate * (1 + _EQUAL)
        for mine, theirs in pairs
        if mine is not None and theirs is not None
    )


def _resources(cost: ResourceCost) -> tuple[Interval | None, ...]:
    return cost.time_to_target_s, usage_cost(cost), cost.energy_kwh
