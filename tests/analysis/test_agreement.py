"""Groups of runs that are alike agree, and groups that differ do not."""

import math

import numpy as np
import pytest

from advisor.analysis.agreement import agreeing, run_to_run_spread

SIZES = (8, 32, 128, 512)


def drawn(random: np.random.Generator, runs: int, shift: float = 0.0) -> dict[int, list[float]]:
    values = {size: list(random.normal(0.9, 0.01, runs)) for size in SIZES}
    return {**values, 512: [value - shift for value in values[512]]}


@pytest.mark.parametrize("runs", [2, 5])
def test_groups_that_are_alike_all_agree_at_the_stated_level(runs: int) -> None:
    random = np.random.default_rng(1)
    all_agree = [agreeing(drawn(random, runs), maximize=True) == SIZES for _ in range(2000)]
    assert np.mean(all_agree) == pytest.approx(0.95, abs=0.015)


def test_a_group_that_is_worse_by_many_spreads_does_not_agree() -> None:
    random = np.random.default_rng(2)
    found = [agreeing(drawn(random, 3, shift=0.1), maximize=True) for _ in range(200)]
    assert np.mean([512 in agree for agree in found]) <= 0.01


def test_smaller_is_better_where_it_is_said() -> None:
    values = {8: [1.0, 1.01], 32: [0.5, 0.51]}
    assert agreeing(values, maximize=False) == (32,) and agreeing(values, maximize=True) == (8,)


def test_single_runs_say_nothing_of_the_noise() -> None:
    spread, freedom = run_to_run_spread({8: [0.9], 32: [0.8]})
    assert math.isnan(spread) and freedom == 0
    assert agreeing({8: [0.9], 32: [0.8]}, maximize=True) == (8,)


def test_the_spread_is_pooled_over_groups() -> None:
    random = np.random.default_rng(3)
    spread, freedom = run_to_run_spread({size: list(random.normal(size, 0.2, 200)) for size in SIZES})
    assert spread == pytest.approx(0.2, rel=0.06) and freedom == 4 * 199
