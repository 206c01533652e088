"""Laws of the Pareto set and of the balance between time and cost."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.pareto import balance, pareto_set, usage_cost
from advisor.records.intervals import Interval
from advisor.records.recommendation import ResourceCost

amounts = st.integers(1, 30).map(float)


def exactly(value: float) -> Interval:
    return Interval(value, value, value)


def cost(batch_size: int, seconds: float, money: float, energy: float | None = None) -> ResourceCost:
    return ResourceCost(
        batch_size,
        exactly(1),
        exactly(seconds),
        exactly(seconds),
        exactly(money),
        exactly(money),
        None if energy is None else exactly(energy),
        False,
    )


several = st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=12).map(
    lambda rows: [cost(index, *row) for index, row in enumerate(rows)]
)


def point(one: ResourceCost) -> tuple[float, ...]:
    assert one.energy_kwh is not None
    return one.time_to_target_s.estimate, usage_cost(one).estimate, one.energy_kwh.estimate


def dominates(one: ResourceCost, other: ResourceCost) -> bool:
    pairs = list(zip(point(one), point(other), strict=True))
    return all(mine <= theirs for mine, theirs in pairs) and any(mine < theirs for mine, theirs in pairs)


@given(several)
@settings(deadline=None)
def test_a_cost_is_in_the_set_unless_another_dominates_or_equals_it(costs: Sequence[ResourceCost]) -> None:
    kept = pareto_set(costs)
    for one in costs:
        if any(dominates(other, one) for other in costs):
            assert one not in kept
        else:
            assert point(one) in map(point, kept)
    assert len(set(map(point, kept))) == len(kept)
    assert list(kept) == [one for one in costs if one in kept]


@given(several)
@settings(deadline=None)
def test_the_set_holds_the_least_of_every_resource_and_the_balance(costs: Sequence[ResourceCost]) -> None:
    kept = pareto_set(costs)
    for resource in range(3):
        assert min(point(one)[resource] for one in kept) == min(point(one)[resource] for one in costs)
    assert min(balance(one).estimate for one in kept) == min(balance(one).estimate for one in costs)


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_proportional_resources_leave_one_cost(
    seconds: Sequence[float], price: float, kilowatts: float
) -> None:
    costs = [cost(index, time, time * price, time * kilowatts) for index, time in enumerate(seconds)]
    (kept,) = pareto_set(costs)
    assert kept.time_to_target_s.estimate == pytest.approx(min(seconds))


def test_a_cost_between_two_is_balanced() -> None:
    """Half the time for a tenth more money is balanced; twice the money for a tenth of the time is not."""
    slow, middle, dear = cost(8, 10, 10), cost(16, 5, 11), cost(32, 4.5, 22)
    wasted = cost(64, 6, 30)
    assert pareto_set([slow, middle, dear, wasted]) == (slow, middle, dear)
    assert min((slow, middle, dear), key=lambda one: balance(one).estimate) is middle


def test_without_a_price_device_hours_stand_for_money() -> None:
    free = ResourceCost(
        8, exactly(1), exactly(9), exactly(9), Interval(4, 1, 9), None, None, interpolated=False
    )
    assert usage_cost(free).estimate == 4
    assert (balance(free).estimate, balance(free).low, balance(free).high) == (6, 3, 9)
