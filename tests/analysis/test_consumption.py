"""The three cases of resource consumption, and the laws of a break-even."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.consumption import break_even, consumption_changes
from advisor.analysis.cost import resource_cost
from advisor.analysis.statistics import Floats, interval_around
from advisor.records.intervals import Interval
from advisor.records.recommendation import BreakEven, Change, Prices, ResourceCost

SECOND = Interval(1.0, 1.0, 1.0)


def costs_of(hours: Sequence[float], prices: Prices) -> list[ResourceCost]:
    return [
        resource_cost(2**power, interval_around(3600 * each, 0.1), SECOND, prices, 1, False)
        for power, each in enumerate(hours)
    ]


def drawn(hours: Sequence[float], spread: float) -> Floats:
    random = np.random.default_rng(0)
    return np.array(hours)[:, np.newaxis] * np.exp(spread * random.standard_normal((len(hours), 2000)))


def changes(hours: Sequence[float], spread: float) -> list[tuple[Change, int, int]]:
    least = int(np.argmin(hours))
    found = consumption_changes(costs_of(hours, Prices()), least, drawn(hours, spread))
    for change in found:
        ends = (int(math.log2(size)) for size in (change.smaller, change.larger))
        smaller, larger = (hours[end] for end in ends)
        assert change.ratio.estimate == pytest.approx(larger / smaller)
        assert change.ratio.low <= change.ratio.estimate <= change.ratio.high
    return [(change.change, change.smaller, change.larger) for change in found]


@pytest.mark.parametrize(
    ("hours", "spread", "expected"),
    [
        ((4, 2, 1), 0.02, [(Change.REDUCES, 1, 4)]),
        ((1, 2, 4), 0.02, [(Change.INCREASES, 1, 4)]),
        ((1.01, 1, 1.02), 0.02, [(Change.UNCHANGED, 1, 4)]),
        (
            (4, 1.01, 1, 1.02, 2, 5),
            0.02,
            [(Change.REDUCES, 1, 2), (Change.UNCHANGED, 2, 8), (Change.INCREASES, 8, 32)],
        ),
        ((4, 1, 3), 0.02, [(Change.REDUCES, 1, 2), (Change.INCREASES, 2, 4)]),
        ((4, 1, 3), 3.0, [(Change.UNCHANGED, 1, 4)]),
        ((1,), 0.02, []),
    ],
)
def test_the_three_cases_are_told_apart(
    hours: Sequence[float], spread: float, expected: list[tuple[Change, int, int]]
) -> None:
    assert changes(hours, spread) == expected


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=9), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_the_cases_join_from_the_smallest_to_the_largest(hours: Sequence[float], spread: float) -> None:
    found = changes(hours, spread)
    assert (found[0][1], found[-1][2]) == (1, 2 ** (len(hours) - 1))
    assert all(one[2] == other[1] for one, other in pairwise(found))
    assert [kind for kind, _, _ in found] == [kind for kind in Change if kind in {case[0] for case in found}]


def even(hours: Sequence[float], chosen: int = 0, spread: float = 0.02, **prices: object) -> list[BreakEven]:
    priced = Prices(2.0, **prices)  # type: ignore[arg-type]
    return list(break_even(costs_of(hours, priced), chosen, priced, drawn(hours, spread)))


@given(
    st.lists(st.floats(0.1, 100), min_size=2, max_size=6),
    st.dictionaries(st.sampled_from([1, 2, 4]), st.floats(0.01, 1e4), max_size=3),
    st.none() | st.floats(0.01, 1e4),
)
@settings(max_examples=60, deadline=None)
def test_break_even_times_saving_is_the_upfront_cost(
    hours: Sequence[float], named: Mapping[int, float], upfront: float | None
) -> None:
    for row in even(hours, upfront_costs=named, upfront_cost=upfront):
        if row.saving is None or row.trainings is None:
            continue
        assert row.trainings.low <= row.trainings.estimate <= row.trainings.high
        if row.saving > 0:
            assert row.trainings.estimate * row.saving == pytest.approx(row.upfront)
        else:
            assert math.isinf(row.trainings.estimate)


def test_a_named_change_is_compared_with_the_cheapest_that_costs_nothing() -> None:
    """At 2 an hour 4 costs 4, and 2 costs 6: 200 have come back after 100 trainings."""
    (row,) = even((4, 3, 2), upfront_costs={4: 200.0})
    assert (row.batch_size, row.against, row.saving) == (4, 2, pytest.approx(2))
    assert row.trainings is not None and row.trainings.estimate == pytest.approx(100)
    assert 85 < row.trainings.low < 95 and 105 < row.trainings.high < 120


def test_one_cost_for_every_change_is_compared_with_whatever_is_in_use() -> None:
    rows = even((4, 3, 2), chosen=2, upfront_cost=200.0)
    assert [(row.batch_size, row.against) for row in rows] == [(4, 1), (4, 2)]
    assert [row.trainings and round(row.trainings.estimate) for row in rows] == [50, 100]


def test_a_saving_within_noise_bounds_nothing() -> None:
    (row,) = even((2.02, 2), spread=0.1, upfront_costs={2: 1.0})
    assert row.trainings is not None and math.isinf(row.trainings.high)
    assert row.trainings.estimate == pytest.approx(25)


def test_what_cannot_be_compared_is_not_known() -> None:
    missing, everywhere = even((4, 3), upfront_costs={64: 9.0}), even((4, 3), upfront_costs={1: 1.0, 2: 1.0})
    assert missing == [BreakEven(64, 9.0, 2, None, None)]
    assert everywhere == [BreakEven(1, 1.0, None, None, None), BreakEven(2, 1.0, None, None, None)]
