"""The interval of steps to target covers the truth, and moves as its evidence does."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.curves import evaluation_steps
from advisor.analysis.fresh_seeds import steps_interval
from advisor.records.intervals import Interval
from advisor.records.scaling import Crossing

LOOK_RATIO = 1.05
GRID = list(evaluation_steps(100_000, LOOK_RATIO))
REPETITIONS = 400
FAILED = Crossing(None, 500.0, None)


@st.composite
def crossings(draw: st.DrawFn, least: int = 1) -> list[Crossing]:
    """Runs that reached the target, each between two evaluations."""
    runs = []
    for _ in range(draw(st.integers(least, 5))):
        low = draw(st.floats(1, 1e5))
        high = low * draw(st.floats(1.001, 2))
        runs.append(Crossing(low + draw(st.floats(0, 1)) * (high - low), low, high))
    return runs


def interval(runs: Sequence[Crossing], log_slack: float = 0.0, level: float = 0.95) -> Interval:
    found = steps_interval(runs, log_slack, level)
    assert found is not None
    return found


def trained(steps: float, random: np.random.Generator) -> Crossing:
    """Return a run that meets the target after ``steps``, as evaluations show it: somewhere in between."""
    after = max(bisect_left(GRID, steps), 1)
    low, high = GRID[after - 1], GRID[after]
    return Crossing(random.uniform(low, high), low, high)


def simulated(true_steps: float, spread: float, seeds: int, level: float = 0.95) -> tuple[float, float]:
    """Return how often the interval covers the truth, and its mean half-width in the logarithm."""
    random = np.random.default_rng([int(true_steps), round(1000 * spread), seeds])
    runs = true_steps * np.exp(spread * random.standard_normal((REPETITIONS, seeds)))
    found = [interval([trained(steps, random) for steps in row], level=level) for row in runs]
    covered = sum(one.low <= true_steps <= one.high for one in found) / REPETITIONS
    return covered, sum(math.log(one.high / one.low) for one in found) / 2 / REPETITIONS


@pytest.mark.parametrize("seeds", range(1, 6))
@pytest.mark.parametrize("spread", [0.08, 0.12, 0.17])
def test_the_interval_covers_and_is_not_idle(spread: float, seeds: int) -> None:
    for true_steps in (30, 2000):
        covered, half_width = simulated(true_steps, spread, seeds)
        assert covered >= 0.925  # 95 % within twice the error of so many repetitions
        # An oracle that knows the larger end of what seeds differ by would need this much.
        oracle = 1.96 * 0.17 / math.sqrt(seeds) + math.log(LOOK_RATIO) / 2
        assert half_width < 1.15 * oracle


def test_small_numbers_of_steps_are_covered_where_evaluations_are_far_apart() -> None:
    covered, _ = simulated(8, 0.17, 2)
    assert covered >= 0.925


def test_more_spread_than_expected_is_learned_from_more_seeds() -> None:
    """At three times the usual spread single runs cannot tell; many can."""
    assert simulated(1000, 0.4, 12)[0] >= 0.9
    assert simulated(1000, 0.4, 1)[0] < 0.8


@given(crossings(), st.floats(0, 1), st.floats(1, 1000))
def test_scaling_the_steps_scales_the_interval(runs: list[Crossing], log_slack: float, factor: float) -> None:
    larger = [Crossing((run.steps or 0) * factor, run.low * factor, (run.high or 0) * factor) for run in runs]
    scaled, expected = interval(larger, log_slack), interval(runs, log_slack).scaled(factor)
    for name in ("estimate", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(getattr(expected, name))


@given(crossings(), st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(runs: list[Crossing], random: Random) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)
    found, expected = interval(shuffled), interval(runs)
    assert (found.low, found.estimate, found.high) == pytest.approx(
        (expected.low, expected.estimate, expected.high)
    )


@given(crossings())
def test_the_estimate_is_the_geometric_mean_and_lies_inside(runs: list[Crossing]) -> None:
    found = interval(runs)
    assert found.estimate == pytest.approx(math.prod((run.steps or 0) ** (1 / len(runs)) for run in runs))
    assert found.low < found.estimate < found.high
    assert found.high / found.estimate == pytest.approx(found.estimate / found.low)


@given(crossings(), st.floats(0, 3))
def test_slack_lowers_the_low_end_alone(runs: list[Crossing], log_slack: float) -> None:
    without, found = interval(runs), interval(runs, log_slack)
    assert found == replace(without, low=pytest.approx(without.low * math.exp(-log_slack)))


@given(crossings(), st.floats(0.5, 0.9), st.floats(0.91, 0.999))
def test_a_higher_level_is_wider(runs: list[Crossing], lower: float, higher: float) -> None:
    narrow, wide = interval(runs, level=lower), interval(runs, level=higher)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert (narrow.level, wide.level) == (lower, higher)


@given(crossings(), st.integers(2, 10))
def test_the_same_again_narrows(runs: list[Crossing], times: int) -> None:
    once, again = interval(runs), interval(runs * times)
    assert once.low < again.low and again.high < once.high


@given(crossings(), st.floats(1.01, 3))
def test_evaluations_further_apart_widen(runs: list[Crossing], factor: float) -> None:
    further = [replace(run, low=run.low / factor, high=(run.high or 0) * factor) for run in runs]
    near, far = interval(runs), interval(further)
    assert far.high / near.high == pytest.approx(near.low / far.low) == pytest.approx(factor)


@given(crossings(), st.integers(0, 10))
def test_failures_leave_the_high_end_open_and_then_nothing(runs: list[Crossing], failures: int) -> None:
    found = steps_interval([*runs, *[FAILED] * failures], 0.1)
    if failures > len(runs):
        assert found is None
    else:
        expected = interval(runs, 0.1)
        assert found == (replace(expected, high=math.inf) if failures else expected)


def test_no_runs_say_nothing() -> None:
    assert steps_interval([], 0.0) is None
    assert steps_interval([FAILED], 0.0) is None


def test_a_run_that_arrives_at_its_first_step_has_an_interval() -> None:
    found = interval([Crossing(1.0, 0.0, 1.0)])
    assert 0 < found.low < 1 < found.high < math.inf
