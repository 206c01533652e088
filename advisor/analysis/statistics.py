"""Estimates of positive quantities with their intervals, and arithmetic with them."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from advisor.records.intervals import Interval

Floats = NDArray[np.float64]

SPREAD_PER_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


def robust_spread(values: Floats) -> float:
    """Return a standard deviation that a minority of outliers does not move; same unit as ``values``."""
    return SPREAD_PER_MAD * float(np.median(np.abs(values - np.median(values))))


def standard_error(values: Floats, weights: Floats, groups: int = 10) -> tuple[float, int]:
    """Return the standard error of the weighted mean of a series, and its degrees of freedom.

    ``values`` and ``weights`` have shape (n,) with n ≥ 2, in the order of time. Neighbours in a series are
    alike, so that their number overstates what is known: from twice ``groups`` values on, means of
    ``groups`` consecutive batches stand for them (non-overlapping batch means; Law, Simulation Modeling
    and Analysis, chapter 9).
    """
    number = groups if len(values) >= 2 * groups else len(values)
    parts = np.array_split(np.arange(len(values)), number)
    sizes = np.array([weights[part].sum() for part in parts])
    means = np.array([np.average(values[part], weights=weights[part]) for part in parts])
    deviations = means - np.average(means, weights=sizes)
    variance = np.average(deviations**2, weights=sizes) / (number - 1)
    return math.sqrt(variance), number - 1


def interval_around(estimate: float, relative_half_width: float, level: float = 0.95) -> Interval:
    """Return the interval of a positive quantity, symmetric in its logarithm."""
    factor = math.exp(relative_half_width)
    return Interval(estimate, estimate / factor, estimate * factor, level)


def product(first: Interval, second: Interval) -> Interval:
    """Return the interval of the product of two independent positive quantities.

    Logarithms add, so their half-widths add in quadrature, below and above the estimate by themselves. An
    infinite upper bound stays infinite. Both intervals have the same level.
    """
    estimate = first.estimate * second.estimate
    if estimate == 0:
        return Interval(0.0, 0.0, first.high * second.high, first.level)
    below = math.hypot(*(_log_ratio(x.estimate, x.low) for x in (first, second)))
    above = math.hypot(*(_log_ratio(x.high, x.estimate) for x in (first, second)))
    return Interval(estimate, estimate * math.exp(-below), _times_exp(estimate, above), first.level)


def log_spread(interval: Interval) -> float:
    """Return the standard deviation of the logarithm that a log-normal interval stands for."""
    return _log_ratio(interval.high, interval.low) / (2 * normal_quantile(interval.level))


def spread_factor(interval: Interval) -> float:
    """Return how many times its lower bound the upper bound of an interval is."""
    return interval.high / interval.low if interval.low > 0 else math.inf


def log_normal_draws(interval: Interval, size: int, random: np.random.Generator) -> Floats:
    """Return draws of shape (size,) of a log-normal quantity with this median and interval."""
    spread = min(log_spread(interval), _WIDEST_LOG_SPREAD)
    return np.asarray(interval.estimate * np.exp(spread * random.standard_normal(size)), dtype=np.float64)


def normal_quantile(level: float) -> float:
    """Return the half-width, in standard deviations, of a central normal interval."""
    return float(stats.norm.ppf(0.5 + level / 2))


def student_quantile(level: float, degrees_of_freedom: int) -> float:
    """Return the half-width, in standard errors, of a central interval for a mean."""
    return float(stats.t.ppf(0.5 + level / 2, degrees_of_freedom))


_WIDEST_LOG_SPREAD = 5.0
"""Stands for an unbounded interval: draws spread over many powers of ten, and stay finite."""


def _log_ratio(high: float, low: float) -> float:
    return math.log(high / low) if low > 0 else math.inf


def _times_exp(estimate: float, exponent: float) -> float:
    return estimate * math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf


_LARGEST_EXPONENT = 700.0
