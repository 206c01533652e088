"""Time per step from raw blocks: what is warm-up, the mean, and how sure it is."""

import math
from collections.abc import Sequence
from dataclasses import replace

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

DRIFT = 0.03
"""Relative half-width that no number of blocks narrows: a shared machine drifts by this much."""
LEAST_STEPS_OF_A_BLOCK = 10
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


def steady_blocks(
    blocks: Sequence[BlockTiming],
) -> tuple[tuple[BlockTiming, ...], tuple[BlockTiming, ...]]:
    """Return the warm-up and the blocks that count, of all blocks in their order.

    The very first block never counts, where there are more: some libraries prepare themselves in it. Nor do
    single steps before blocks of several: they are there for the cost of a call.
    """
    first, rest = tuple(blocks[:1]), tuple(blocks[1:])
    if not rest:
        return (), first
    several = next((place for place, block in enumerate(rest) if block.steps > 1), 0)
    warm_up, steady = split_warm_up(rest[several:])
    return (*first, *rest[:several], *warm_up), steady


def time_per_step(blocks: Sequence[BlockTiming], level: float = 0.95) -> Interval:
    """Return the mean time per step (s) of at least one steady block.

    The mean and not the median, since totals are predicted from it. Stalls in up to one block in twenty
    are clipped (always a single one), more of them are part of the mean. The interval adds sampling error
    and ``DRIFT`` in quadrature.
    """
    mean, sampling = _mean_and_sampling(blocks, level)
    return interval_around(mean, math.hypot(sampling, DRIFT), level)


def precise_enough(blocks: Sequence[BlockTiming], precision: float) -> bool:
    """Return whether the relative half-width of the interval is at most ``precision``.

    With drift in it: to stop whenever the blocks happen to agree would prefer times of calm. A warm-up as
    long as can be told from so few blocks may not be over.
    """
    warm_up, steady = split_warm_up(blocks)
    if not steady or 0 < len(warm_up) == _furthest_cut(len(blocks)):
        return False
    return math.hypot(_mean_and_sampling(steady, 0.95)[1], DRIFT) <= precision


def without_call_overhead(
    blocks: Sequence[BlockTiming], warm_up: Sequence[BlockTiming]
) -> tuple[BlockTiming, ...]:
    """Return ``blocks`` less what each call of the compiled loop costs beside its steps.

    A call that takes a single step, as some in ``warm_up`` do, takes that cost and one step. Where a block
    has few steps the difference is lost in their noise, and nothing is taken off.
    """
    singles = [block.seconds for block in warm_up[1:] if block.steps == 1]
    many = [block for block in blocks if block.steps >= LEAST_STEPS_OF_A_BLOCK]
    if not singles or len(many) < len(blocks):
        return tuple(blocks)
    steps, seconds = sum(block.steps for block in many), sum(block.seconds for block in many)
    single_s = float(np.median(singles))
    step_s = (seconds - len(many) * single_s) / (steps - len(many))
    overhead_s = max(0.0, single_s - max(step_s, 0.0))
    return tuple(
        replace(block, seconds=max(block.seconds - overhead_s, block.seconds / 2)) for block in blocks
    )


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
