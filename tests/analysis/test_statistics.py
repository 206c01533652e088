"""Intervals cover what they claim to, and arithmetic with them is that of the quantities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.statistics import (
    interval_around,
    log_normal_draws,
    log_spread,
    product,
    robust_spread,
    spread_factor,
    standard_error,
    student_quantile,
)
from advisor.records.intervals import Interval

positive = st.floats(1e-6, 1e6)
width = st.floats(0, 2)


def test_product_covers_the_product_of_two_noisy_estimates() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        first, second = np.exp(random.normal(0, [0.2, 0.05]))
        found = product(interval_around(3 * first, 1.96 * 0.2), interval_around(7 * second, 1.96 * 0.05))
        covered += found.low <= 21 <= found.high
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


@given(positive, width, positive, width)
def test_product_is_symmetric_and_no_narrower_than_its_parts(a: float, u: float, b: float, v: float) -> None:
    first, second = interval_around(a, u), interval_around(b, v)
    found = product(first, second)
    assert found == product(second, first)
    assert found.estimate == a * b
    assert spread_factor(found) >= 0.999 * max(spread_factor(first), spread_factor(second))
    assert spread_factor(found) <= 1.001 * spread_factor(first) * spread_factor(second)


@given(positive, width, positive)
def test_a_known_factor_scales_an_interval(a: float, u: float, factor: float) -> None:
    found = product(interval_around(a, u), Interval(factor, factor, factor))
    assert (found.low, found.high) == pytest.approx(
        (interval_around(a, u).low * factor, interval_around(a, u).high * factor)
    )


def test_product_keeps_unbounded_ends_and_zero() -> None:
    unbounded = product(Interval(5, 0, math.inf), Interval(2, 1, 3))
    assert (unbounded.estimate, unbounded.low, unbounded.high) == (10, 0, math.inf)
    assert product(Interval(0, 0, 1), Interval(2, 1, 3)) == Interval(0, 0, 3)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_standard_error_covers_the_mean_of_a_correlated_series(correlation: float) -> None:
    random = np.random.default_rng(2)
    repetitions, covered = 1500, 0
    for _ in range(repetitions):
        series = np.empty(200)
        series[0] = random.normal()
        for index in range(1, 200):
            series[index] = correlation * series[index - 1] + math.sqrt(1 - correlation**2) * random.normal()
        error, freedom = standard_error(series, np.ones(200))
        covered += abs(series.mean()) <= student_quantile(0.95, freedom) * error
    assert 0.91 <= covered / repetitions <= 0.97


def test_standard_error_weighs_values_by_what_they_stand_for() -> None:
    once = standard_error(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    assert once == (pytest.approx(np.std([1, 2, 3], ddof=1) / math.sqrt(3)), 2)
    light = standard_error(np.array([1.0, 2.0, 90.0]), np.array([1.0, 1.0, 1e-9]))
    assert light[0] < 0.5


def test_robust_spread_is_the_standard_deviation_and_ignores_outliers() -> None:
    values = np.random.default_rng(3).normal(5, 2, 20_000)
    assert robust_spread(values) == pytest.approx(2, rel=0.03)
    values[:1000] = 1e9
    assert robust_spread(values) == pytest.approx(2, rel=0.10)


@given(positive, st.floats(0.001, 1))
def test_draws_have_the_median_and_the_spread_of_their_interval(estimate: float, half_width: float) -> None:
    interval = interval_around(estimate, half_width)
    draws = log_normal_draws(interval, 4000, np.random.default_rng(4))
    assert np.median(draws) == pytest.approx(estimate, rel=0.05)
    assert np.mean((draws >= interval.low) & (draws <= interval.high)) == pytest.approx(0.95, abs=0.02)


def test_draws_of_an_unbounded_interval_are_finite_and_wide() -> None:
    draws = log_normal_draws(Interval(5, 0, math.inf), 1000, np.random.default_rng(5))
    assert np.all(np.isfinite(draws))
    assert draws.max() / draws.min() > 1e6
    assert log_spread(Interval(5, 0, math.inf)) == math.inf
