"""Resampled times to the target: how far the evidence supports a comparison of batch sizes."""

from collections.abc import Sequence

import numpy as np

from advisor.analysis.scaling import steps_at
from advisor.analysis.statistics import Floats, log_normal_draws
from advisor.records.intervals import Interval
from advisor.records.recommendation import ResourceCost
from advisor.records.scaling import FitOutcome, ScalingFit

NEAR_BEST = 1.05
"""A batch size is as good as the best where it takes at most so many times as much."""
DRAWS = 1000


def is_trusted(fit: ScalingFit) -> bool:
    """Return whether the curve may stand for steps that were not measured."""
    untrusted = (FitOutcome.INSUFFICIENT, FitOutcome.NOT_HYPERBOLIC)
    return fit.estimate is not None and fit.outcome not in untrusted


def time_draws(costs: Sequence[ResourceCost], fit: ScalingFit, random: np.random.Generator) -> Floats:
    """Return draws of the times to target (s), shape (costs, draws).

    A draw is a bootstrap draw of the fitted curve with times per step drawn from their intervals; without
    a trusted fit, times to target drawn from theirs.
    """
    curves = _curve_draws(costs, fit)
    if curves is None:
        return np.stack([log_normal_draws(cost.time_to_target_s, DRAWS, random) for cost in costs])
    size = curves.shape[1]
    times_s = np.stack([log_normal_draws(cost.time_per_step_s, size, random) for cost in costs])
    return np.asarray(curves * times_s, dtype=np.float64)


def consumption_draws(costs: Sequence[ResourceCost], times: Floats) -> Floats:
    """Return draws of device-hours, shape (costs, draws), from those of the ``times`` (s) to target."""
    per_second = [cost.device_hours.estimate / cost.time_to_target_s.estimate for cost in costs]
    return np.asarray(times * np.array(per_second)[:, np.newaxis], dtype=np.float64)


def stability(times: Floats, chosen: int) -> float:
    """Return the share of draws in which row ``chosen`` takes at most ``NEAR_BEST`` times the least time.

    On the same devices, device-hours and money are proportional to time.
    """
    return float(np.mean(times[chosen] <= NEAR_BEST * times.min(axis=0)))


def drawn_interval(estimate: float, draws: Floats, level: float) -> Interval:
    """Return ``estimate`` with the central interval of its ``draws``, widened to hold it."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate), level)


def _curve_draws(costs: Sequence[ResourceCost], fit: ScalingFit) -> Floats | None:
    """Return steps by the drawn curves, shape (costs, draws), or None without a trusted fit."""
    if not (is_trusted(fit) and fit.draws):
        return None
    return np.stack([steps_at(fit.draws, cost.batch_size) for cost in costs])
