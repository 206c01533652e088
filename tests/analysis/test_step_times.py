"""Known times per step are recovered through noise, drift, warm-up and stalls."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.step_times import (
    DRIFT,
    USUAL_SPREAD,
    precise_enough,
    split_warm_up,
    steady_blocks,
    time_per_step,
    visit_spread,
    without_call_overhead,
)
from advisor.records.session import BlockTiming
from tests.analysis.evidence import blocks

Visit = list[BlockTiming]

TRUE_S = 1e-3


def simulated(
    random: np.random.Generator,
    number: int,
    noise: float = 0.03,
    drift: float = 0.01,
    stalls: int = 0,
    warm_up: float = 0.0,
) -> list[BlockTiming]:
    """Blocks of 50 steps of 1 ms: white noise, slow drift, stalls of ten times, decaying warm-up (blocks)."""
    level = np.empty(number)
    level[0] = random.normal(0, drift)
    for index in range(1, number):
        level[index] = 0.95 * level[index - 1] + math.sqrt(1 - 0.95**2) * random.normal(0, drift)
    times = TRUE_S * np.exp(level + random.normal(-(noise**2) / 2, noise, number))
    times[random.choice(number, stalls, replace=False)] *= 10
    if warm_up:
        times *= 1 + 2 * np.exp(-np.arange(number) / warm_up)
    return [BlockTiming(50, 50 * time, 1.0) for time in times]


@pytest.mark.parametrize(
    ("number", "settings", "least"),
    [
        (5, {}, 0.93),
        (20, {}, 0.93),
        (60, {}, 0.95),
        (20, {"drift": 0.0, "noise": 0.15}, 0.90),
        (20, {"stalls": 1}, 0.93),
        (60, {"stalls": 2}, 0.93),
        (60, {"warm_up": 3.0}, 0.93),
    ],
)
def test_the_interval_covers_the_mean(number: int, settings: Mapping[str, float], least: float) -> None:
    random = np.random.default_rng(1)
    repetitions, covered, errors = 400, 0, []
    for _ in range(repetitions):
        found = time_per_step([simulated(random, number, **settings)])  # type: ignore[arg-type]
        covered += found.low <= TRUE_S <= found.high
        errors.append(found.estimate / TRUE_S - 1)
    assert covered / repetitions >= least
    assert abs(np.mean(errors)) < 0.015


def test_the_mean_is_estimated_and_not_the_median() -> None:
    random = np.random.default_rng(2)
    times = np.where(random.random(4000) < 0.3, 1.3, 1.0)
    found = time_per_step([[BlockTiming(1, time, 1.0) for time in times]])
    assert found.estimate == pytest.approx(times.mean(), rel=0.001)


def visits_of(random: np.random.Generator, number: int, between: float, noise: float) -> list[Visit]:
    """Visits of ten blocks after a first that never counts; the level of each is another."""
    levels = random.normal(0, between, number)
    return [
        [BlockTiming(50, 50 * TRUE_S * math.exp(level + random.normal(0, noise)), 1.0) for _ in range(11)]
        for level in levels
    ]


@pytest.mark.parametrize(
    ("sizes", "number", "between"),
    [
        *((1, number, between) for number in (1, 2) for between in (0.0, 0.04)),  # as is presumed
        *((10, 2, between) for between in (0.0, 0.05, 0.1)),
        (10, 5, 0.1),
    ],
)
def test_visits_that_differ_widen_the_interval_until_it_covers(
    sizes: int, number: int, between: float
) -> None:
    random = np.random.default_rng(7)
    covered = []
    for _ in range(200 // sizes):
        sweep = [visits_of(random, number, between, 0.03) for _ in range(sizes)]
        spread = visit_spread(sweep)
        found = [time_per_step(visits, spread) for visits in sweep]
        covered += [interval.low <= TRUE_S <= interval.high for interval in found]
    assert np.mean(covered) >= 0.9


def test_the_spread_of_visits_is_recovered() -> None:
    random = np.random.default_rng(8)
    found = visit_spread([visits_of(random, 2, 0.06, 0.001) for _ in range(400)])
    assert found.deviation == pytest.approx(0.06, rel=0.1)
    assert found.freedom == USUAL_SPREAD.freedom + 400
    assert visit_spread([]) == visit_spread([[blocks(1e-3)]]) == USUAL_SPREAD


def test_drift_is_a_floor_that_nothing_narrows() -> None:
    steady = [blocks(2e-3, 1000)] * 50
    found = time_per_step(steady, visit_spread([steady]))
    assert DRIFT < math.log(found.high / found.estimate) < 1.01 * DRIFT


def test_steady_visits_become_precise_and_one_never_is() -> None:
    def is_precise(visits: list[tuple[BlockTiming, ...]], sizes: int, precision: float) -> bool:
        return precise_enough(visits, visit_spread([visits] * sizes), precision)

    alone = [number for number in range(1, 20) if is_precise([blocks(2e-3)] * number, 1, 0.02)]
    among_ten = [number for number in range(1, 20) if is_precise([blocks(2e-3)] * number, 10, 0.02)]
    assert (alone[0], among_ten[0]) == (8, 3)
    assert alone[-1] == among_ten[-1] == 19
    assert not is_precise([blocks(2e-3)], 10, 0.5)
    assert not is_precise([blocks(2e-3), blocks(2.4e-3)], 10, 0.05)


def test_one_block_says_nothing_about_its_own_spread() -> None:
    found = time_per_step([blocks(2e-3, 1)])
    assert found.estimate == pytest.approx(2e-3)
    assert found.high / found.low > 1.5
    assert not precise_enough([blocks(2e-3, 1)] * 5, USUAL_SPREAD, 0.05)


@given(st.floats(1e-6, 1e3), st.integers(0, 1000), st.integers(1, 60))
def test_time_scales_with_the_unit_of_time(factor: float, seed: int, number: int) -> None:
    original = simulated(np.random.default_rng(seed), number)
    scaled = [BlockTiming(block.steps, block.seconds * factor, 1.0) for block in original]
    assert len(split_warm_up(scaled)[0]) == len(split_warm_up(original)[0])
    found, expected = time_per_step([scaled]), time_per_step([original]).scaled(factor)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(1e-6, 10)), max_size=40))
def test_warm_up_is_a_prefix_and_at_most_half(raw: list[tuple[int, float]]) -> None:
    given_blocks = tuple(BlockTiming(steps, seconds, 1.0) for steps, seconds in raw)
    warm_up, steady = split_warm_up(given_blocks)
    assert warm_up + steady == given_blocks
    assert len(warm_up) <= len(given_blocks) / 2
    assert not warm_up or len(steady) >= 5


@pytest.mark.parametrize("slow", [1, 4, 9])
def test_slow_leading_blocks_are_warm_up(slow: int) -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        series = simulated(random, 30)
        for index in range(slow):
            series[index] = BlockTiming(50, series[index].seconds * 1.5, 1.0)
        assert slow <= len(split_warm_up(series)[0]) <= 15


def test_a_stall_in_the_middle_is_no_warm_up() -> None:
    series = list(blocks(TRUE_S, 30))
    series[8] = BlockTiming(10, 1.0, 1.0)
    assert split_warm_up(series)[0] == ()


def test_what_a_call_costs_is_no_part_of_a_step() -> None:
    random, overhead_s = np.random.default_rng(5), 1.5e-3
    found = []
    for _ in range(100):
        singles = [overhead_s + TRUE_S * random.lognormal(0, 0.2) for _ in range(6)]
        series = [BlockTiming(1, seconds, 1.0) for seconds in (0.1, *singles)]
        series += [
            BlockTiming(50, overhead_s + 50 * TRUE_S * random.lognormal(0, 0.03), 1.0) for _ in range(15)
        ]
        warm_up, steady = steady_blocks(series)
        assert tuple(series) == (*warm_up, *steady) and all(block.steps == 50 for block in steady)
        found.append(time_per_step([series]).estimate)
    assert np.mean(found) == pytest.approx(TRUE_S, rel=0.005)
    assert np.std(found) < 0.015 * TRUE_S


def test_single_steps_count_among_blocks_of_few() -> None:
    """Where a block holds one step or two by chance, none is thrown away."""
    series = tuple(BlockTiming(steps, steps * TRUE_S, 1.0) for steps in (1, 1, 1, 1, 1, 1, 1, 2, 1, 1))
    assert steady_blocks(series) == (series[:1], series[1:])


def test_blocks_of_few_steps_are_left_as_they_are() -> None:
    slow = tuple(BlockTiming(3, 3 * TRUE_S, 1.0) for _ in range(8))
    assert without_call_overhead(slow, (BlockTiming(1, 0.1, 1.0), BlockTiming(1, 2 * TRUE_S, 1.0))) == slow
    assert without_call_overhead(blocks(TRUE_S), ()) == blocks(TRUE_S)


def test_of_steps_timed_one_by_one_only_the_first_is_set_aside() -> None:
    series = tuple(BlockTiming(1, seconds, 1.0) for seconds in (9.0, 1.0, 1.0, 1.0))
    assert steady_blocks(series) == (series[:1], series[1:])
    assert steady_blocks(series[:1]) == ((), series[:1])
    assert steady_blocks(()) == ((), ())
