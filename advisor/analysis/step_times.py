"""Time per step from raw blocks: what is warm-up, the mean, and how sure it is."""

import math
from collections.abc import Sequence

import numpy as np

from advisor.analysis.statistics import (
    Floats,
    interval_around,
    robust_spread,
    standard_error,
    student_quantile,
)
from advisor.records.intervals import Interval
from advisor.records.session import BlockTiming

DRIFT = 0.02
"""Relative half-width that no number of blocks narrows: a shared machine drifts by this much."""
LEAST_STEADY_BLOCKS = 5
"""With fewer blocks left, warm-up cannot be told from noise."""

_STALL_FENCE = 6.0
_LEAST_SPREAD = 0.005
_LONE = 0.05
_ROUNDING = 1e-9
_SPREAD_OF_ONE_BLOCK = 0.25


def split_warm_up(
    blocks: Sequence[BlockTiming],
) -> tuple[tuple[BlockTiming, ...], tuple[BlockTiming, ...]]:
    """Return the leading blocks up to which the time per step is not yet stationary, and the rest.

    The cut minimizes the squared standard error of what remains (marginal standard error rule; White
    1997, Simulation 69:323), over at most half of the blocks and with at least ``LEAST_STEADY_BLOCKS``
    left. A running median of three comes first, so that a single stall moves no cut.
    """
    furthest = _furthest_cut(len(blocks))
    if furthest == 0:
        return (), tuple(blocks)
    times = _times_per_step(blocks)
    times[1:-1] = np.median([times[:-2], times[1:-1], times[2:]], axis=0)
    rounding = (_ROUNDING * float(times.mean())) ** 2
    errors = [max(float(np.var(times[cut:])), rounding) / (len(times) - cut) for cut in range(furthest + 1)]
    cut = int(np.argmin(errors))
    return tuple(blocks[:cut]), tuple(blocks[cut:])


def time_per_step(blocks: Sequence[BlockTiming], level: float = 0.95) -> Interval:
    """Return the mean time per step (s) of at least one steady block.

    The mean and not the median, since totals are predicted from it. Stalls in up to one block in twenty
    are clipped (always a single one), more of them are part of the mean. The interval adds sampling error
    and ``DRIFT`` in quadrature.
    """
    mean, sampling = _mean_and_sampling(blocks, level)
    return interval_around(mean, math.hypot(sampling, DRIFT), level)


def precise_enough(blocks: Sequence[BlockTiming], precision: float) -> bool:
    """Return whether more blocks are not needed for a relative half-width of ``precision``.

    Only the sampling error counts, which more blocks narrow; drift stays. A warm-up as long as can be
    told from so few blocks may not be over.
    """
    warm_up, steady = split_warm_up(blocks)
    if not steady or 0 < len(warm_up) == _furthest_cut(len(blocks)):
        return False
    return _mean_and_sampling(steady, 0.95)[1] <= precision


def _furthest_cut(number_of_blocks: int) -> int:
    return max(0, min(number_of_blocks // 2, number_of_blocks - LEAST_STEADY_BLOCKS))


def _times_per_step(blocks: Sequence[BlockTiming]) -> Floats:
    return np.array([block.seconds / block.steps for block in blocks], dtype=np.float64)


def _mean_and_sampling(blocks: Sequence[BlockTiming], level: float) -> tuple[float, float]:
    """Return the mean time per step (s) and the relative half-width of its sampling error."""
    times = _clip_lone_stalls(_times_per_step(blocks))
    steps = np.array([block.steps for block in blocks], dtype=np.float64)
    mean = float(np.average(times, weights=steps))
    if len(blocks) == 1:
        return mean, _SPREAD_OF_ONE_BLOCK
    error, freedom = standard_error(times, steps)
    return mean, student_quantile(level, freedom) * error / mean


def _clip_lone_stalls(times: Floats) -> Floats:
    """Clip blocks far above the rest, unless they are more than one in twenty (and more than one)."""
    median = float(np.median(times))
    fence = median + _STALL_FENCE * max(robust_spread(times), _LEAST_SPREAD * median)
    lone = np.count_nonzero(times > fence) <= max(1, _LONE * len(times))
    return np.minimum(times, fence) if lone else times
