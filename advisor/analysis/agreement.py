"""Whether results of several groups of runs differ by more than runs of one group do."""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from scipy import stats

LEVEL = 0.95


def run_to_run_spread(values: Mapping[int, Sequence[float]]) -> tuple[float, int]:
    """Return the standard deviation within groups, pooled over all, and its degrees of freedom.

    The freedom is 0, and the spread NaN, where no group has two runs.
    """
    freedom = sum(len(runs) - 1 for runs in values.values())
    squares = sum(float(((np.array(runs) - np.mean(runs)) ** 2).sum()) for runs in values.values())
    return (math.sqrt(squares / freedom), freedom) if freedom else (math.nan, 0)


def agreeing(values: Mapping[int, Sequence[float]], maximize: bool, level: float = LEVEL) -> tuple[int, ...]:
    """Return the groups whose mean cannot be told from that of the best one, ascending.

    Tukey's honestly significant difference in the form of Kramer (Biometrics 12, 1956) for groups of
    different sizes: where all groups are alike, all of them agree with probability ``level``, however many
    there are. Where no group has two runs nothing is known of the noise, and the best stands alone.
    """
    means = {group: float(np.mean(runs)) for group, runs in values.items()}
    best = (max if maximize else min)(means, key=lambda group: means[group])
    spread, freedom = run_to_run_spread(values)
    if not freedom or len(values) == 1:
        return (best,)
    # In standard errors of a mean; a difference of two means has sqrt(2) times as large a one.
    quantile = _range_quantile(level, len(values), freedom) / math.sqrt(2)

    def allowed(group: int) -> float:
        return quantile * spread * math.sqrt(1 / len(values[group]) + 1 / len(values[best]))

    return tuple(sorted(group for group in values if abs(means[group] - means[best]) <= allowed(group)))


@cache
def _range_quantile(level: float, groups: int, freedom: int) -> float:
    """Return the quantile of the studentized range, which takes a numerical integration in two dimensions."""
    return float(stats.studentized_range.ppf(level, groups, freedom))
