"""What runs with fresh seeds say of the steps to target at one batch size."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats

from advisor.records.intervals import Interval
from advisor.records.scaling import Crossing

SEED_LOG_SD = 0.12
"""Run-to-run standard deviation of ln(steps) expected beforehand: seeds differ by 8 to 17 %."""
SEED_PRIOR_RUNS = 4
"""How many runs that expectation is worth beside the runs at hand."""


def steps_interval(crossings: Sequence[Crossing], log_slack: float, level: float = 0.95) -> Interval | None:
    """Return the geometric mean of steps to target with its interval, None where most runs failed.

    A t interval of the mean of ln(steps), whose variance is pooled with the expected one as a scaled
    inverse chi-squared prior (Gelman et al., Bayesian Data Analysis, 3rd edition, section 3.3), widened by
    half the distance between evaluations. The lower end goes down by ``log_slack``, what a finer search
    might still gain; where a run failed the upper end is infinite.
    """
    reached = [found for found in crossings if found.steps is not None]
    if not reached or 2 * len(reached) < len(crossings):
        return None
    logs = np.log([found.steps for found in reached if found.steps is not None])
    half = _half_width(logs, level) + _grid_log_width(reached) / 2
    middle = float(logs.mean())
    high = math.inf if len(reached) < len(crossings) else math.exp(middle + half)
    return Interval(math.exp(middle), math.exp(middle - half - log_slack), high, level)


def seed_log_sd(batch_sizes: Iterable[Sequence[Crossing]]) -> float:
    """Return the run-to-run standard deviation of ln(steps), pooled with the expected one."""
    squares, freedom = SEED_PRIOR_RUNS * SEED_LOG_SD**2, SEED_PRIOR_RUNS
    for crossings in batch_sizes:
        logs = np.log([found.steps for found in crossings if found.steps is not None])
        if len(logs) > 1:
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom)


def _half_width(logs: np.ndarray, level: float) -> float:
    freedom = SEED_PRIOR_RUNS + len(logs) - 1
    deviations = float(((logs - logs.mean()) ** 2).sum())
    variance = (SEED_PRIOR_RUNS * SEED_LOG_SD**2 + deviations) / freedom
    return float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(variance / len(logs))


def _grid_log_width(crossings: Sequence[Crossing]) -> float:
    widths = [math.log(found.high / found.low) for found in crossings if found.high and found.low > 0]
    return sum(widths) / len(widths) if widths else 0.0
