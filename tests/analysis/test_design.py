import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.design import (
    BEYOND_THE_TURN,
    FEWEST_REACHED,
    MARGIN_DOWN,
    MARGIN_UP,
    from_the_middle,
    next_batch_size,
    step_limit,
    wanted_batch_size,
)

POWERS = [2**power for power in range(11)]


def explore(
    candidates: list[int], steps_at, most: int = 7, wanted: float = math.inf
) -> dict[int, float | None]:
    steps: dict[int, float | None] = {}
    middle = candidates[len(candidates) // 2]
    while (batch_size := next_batch_size(steps, candidates, middle, wanted, most)) is not None:
        assert batch_size in candidates and batch_size not in steps
        steps[batch_size] = steps_at(batch_size)
    return steps


def hyperbola(critical: float, least: float = 20.0):
    return lambda batch_size: least * (1 + critical / batch_size)


@given(critical=st.floats(16, 200), most=st.integers(5, 11))
def test_both_regimes_are_seen(critical: float, most: int) -> None:
    steps = explore(POWERS, hyperbola(critical), most)
    assert len(steps) <= most
    assert min(steps) <= critical / 2 and max(steps) >= critical


def test_it_starts_in_the_middle_and_goes_down_first_by_fours() -> None:
    assert list(explore(POWERS, hyperbola(60.0))) == [32, 8, 2, 128, 512, 1024]


@given(critical=st.floats(4, 400), factor=st.floats(1.0, 4.0))
def test_it_goes_up_as_far_as_wanted_and_hardly_further(critical: float, factor: float) -> None:
    wanted = factor * critical
    largest = max(explore([2**power for power in range(16)], hyperbola(critical), wanted=wanted))
    assert wanted <= largest <= max(256, 4 * wanted)


def test_it_stops_upwards_where_steps_no_longer_fall() -> None:
    steps = explore([2**power for power in range(16)], lambda batch_size: 100.0, most=16)
    assert max(steps) == 256  # where it started


def test_it_does_not_go_down_where_examples_no_longer_fall() -> None:
    steps = explore([2**power for power in range(15)], lambda batch_size: 1e5 / batch_size, most=11)
    assert min(steps) == 32 and len(steps) >= FEWEST_REACHED


def test_too_few_that_arrived_are_made_up_for() -> None:
    """Only the two middle ones need no more than the steps allowed."""
    steps = explore(POWERS, lambda batch_size: 100.0 if 8 <= batch_size <= 128 else None, most=9)
    assert sum(bool(found) for found in steps.values()) == FEWEST_REACHED


def test_it_goes_down_first_where_nothing_was_reached() -> None:
    assert next_batch_size({32: None}, POWERS, 32, math.inf, 7) == 8


def test_the_curve_calls_for_what_shows_its_turn() -> None:
    assert wanted_batch_size(100, {}, [32]) == pytest.approx(BEYOND_THE_TURN * 100)


@pytest.mark.parametrize(("gain", "is_wanted"), [(0.02, False), (0.1, True)])
def test_a_larger_batch_size_that_is_clearly_faster_is_wanted_too(gain: float, is_wanted: bool) -> None:
    times_s = {32: 3.0, 128: 2.0, 4096: 2.0 * (1 - gain)}
    wanted = wanted_batch_size(100, times_s, [32, 128])
    assert wanted == (4096 if is_wanted else pytest.approx(BEYOND_THE_TURN * 100))


def test_a_single_candidate_is_looked_at_once() -> None:
    assert list(explore([64], hyperbola(10.0))) == [64]


@given(candidates=st.sets(st.integers(1, 5000), min_size=1, max_size=9))
def test_every_listed_batch_size_gets_its_turn(candidates: set[int]) -> None:
    looked_at: list[int] = []
    while (batch_size := from_the_middle(sorted(candidates), looked_at)) is not None:
        looked_at.append(batch_size)
    assert sorted(looked_at) == sorted(candidates)


@given(
    critical=st.floats(1, 1000),
    known=st.sampled_from(POWERS),
    batch_size=st.sampled_from(POWERS),
)
def test_the_limit_leaves_room_for_what_theory_allows(critical: float, known: int, batch_size: int) -> None:
    steps = hyperbola(critical)
    room = MARGIN_UP if batch_size > known else MARGIN_DOWN
    assert step_limit({known: steps(known)}, batch_size, 10**9) >= room * steps(batch_size)


def test_the_limit_of_examples_holds_always() -> None:
    assert step_limit({}, 64, 6400) == 100
    assert step_limit({32: 1e6}, 64, 6400) == 100
    assert step_limit({32: None}, 64, 6400) == 100
    assert step_limit({}, 6400, 64) == pytest.approx(1)
