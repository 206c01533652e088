"""Resource consumption against batch size, and when an upfront cost has paid off."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from advisor.analysis.resampling import drawn_interval
from advisor.analysis.statistics import Floats
from advisor.records.recommendation import (
    BreakEven,
    Change,
    ConsumptionChange,
    Prices,
    ResourceCost,
)

LEVEL = 0.95


def consumption_changes(
    costs: Sequence[ResourceCost], least: int, draws: Floats
) -> tuple[ConsumptionChange, ...]:
    """Return where a larger batch size reduces resource consumption, leaves it unchanged, or increases it.

    ``costs`` ascend, the one at index ``least`` consumes the least, ``draws`` has shape (costs, draws) in
    device-hours. Unchanged is the range around the least in which a batch size consumes no more than that
    by more than noise: the interval of their ratio reaches down to 1. Below it a larger batch size reduces
    consumption, above it increases it.
    """
    low = high = least
    while low > 0 and _within_noise(draws[low - 1] / draws[least]):
        low -= 1
    while high < len(costs) - 1 and _within_noise(draws[high + 1] / draws[least]):
        high += 1
    ends = (
        (Change.REDUCES, 0, low),
        (Change.UNCHANGED, low, high),
        (Change.INCREASES, high, len(costs) - 1),
    )
    return tuple(_change(kind, one, other, costs, draws) for kind, one, other in ends if one < other)


def break_even(
    costs: Sequence[ResourceCost], chosen: int, prices: Prices, draws: Floats
) -> Iterator[BreakEven]:
    """Yield after how many trainings each upfront cost has paid off; a saving is money for one training.

    ``costs`` have money, and ``draws`` of device-hours have shape (costs, draws). A batch size with an
    upfront cost of its own is compared with the cheapest that has none; where one upfront cost holds for
    every change, the one at index ``chosen`` is compared with each other, which may be in use now.
    """
    price = prices.price_per_device_hour or 0.0
    free = [index for index, cost in enumerate(costs) if cost.batch_size not in prices.upfront_costs]
    against = min(free, key=lambda index: _money(costs[index]), default=None)
    places = {cost.batch_size: index for index, cost in enumerate(costs)}
    for batch_size, upfront in sorted(prices.upfront_costs.items()):
        if against is None or batch_size not in places:
            known = None if against is None else costs[against].batch_size
            yield BreakEven(batch_size, upfront, known, None, None)
        else:
            yield _break_even(costs, places[batch_size], against, upfront, draws * price)
    if prices.upfront_cost is not None:
        for other in range(len(costs)):
            if other != chosen:
                yield _break_even(costs, chosen, other, prices.upfront_cost, draws * price)


def _within_noise(ratios: Floats) -> bool:
    return bool(np.quantile(ratios, (1 - LEVEL) / 2) <= 1)


def _change(
    kind: Change, smaller: int, larger: int, costs: Sequence[ResourceCost], draws: Floats
) -> ConsumptionChange:
    ratio = costs[larger].device_hours.estimate / costs[smaller].device_hours.estimate
    interval = drawn_interval(ratio, draws[larger] / draws[smaller], LEVEL)
    return ConsumptionChange(kind, costs[smaller].batch_size, costs[larger].batch_size, interval)


def _break_even(
    costs: Sequence[ResourceCost], to: int, against: int, upfront: float, money: Floats
) -> BreakEven:
    saving = _money(costs[against]) - _money(costs[to])
    drawn = money[against] - money[to]
    needed = np.divide(upfront, drawn, out=np.full_like(drawn, math.inf), where=drawn > 0)
    estimate = upfront / saving if saving > 0 else math.inf
    trainings = drawn_interval(estimate, needed, LEVEL)
    return BreakEven(costs[to].batch_size, upfront, costs[against].batch_size, saving, trainings)


def _money(cost: ResourceCost) -> float:
    return cost.money.estimate if cost.money else math.inf
