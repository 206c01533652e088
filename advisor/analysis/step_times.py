"""Time per step from raw blocks: what is warm-up, the mean, and how sure it is.

A batch size is timed in visits, some time apart, since machines drift: within a visit blocks agree better
with one another than with those of a minute later.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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

Visit = Sequence[BlockTiming]
"""Blocks of one uninterrupted timing, in their order."""

DRIFT = 0.03
"""Relative half-width that no timing narrows: another process at another hour differs by this much."""
LEAST_STEPS_OF_A_BLOCK = 10
LEAST_STEADY_BLOCKS = 5
"""With fewer blocks left, warm-up cannot be told from noise."""

_STALL_FENCE = 6.0
_LEAST_SPREAD = 0.005
_LONE = 0.05
_ROUNDING = 1e-9
_SPREAD_OF_ONE_BLOCK = 0.25


@dataclass(frozen=True)
class VisitSpread:
    """Relative standard deviation of a visit's mean around that of many, as ``freedom`` degrees tell it."""

    deviation: float
    freedom: int


USUAL_SPREAD = VisitSpread(0.04, 4)
"""What is presumed before a second visit, as if so many pairs of visits had shown it.

On a shared virtual machine visits of 0.3 s were seen to differ by 2 % in calm hours and by 14 % in others.
"""


def split_warm_up(blocks: Visit) -> tuple[tuple[BlockTiming, ...], tuple[BlockTiming, ...]]:
    """Return the leading blocks up to which the time per step is not yet stationary, and the rest.

    The cut minimizes the squared standard error of what remains (marginal standard error rule; White
    1997, Simulation 69:323), over at most half of the blocks and with at least ``LEAST_STEADY_BLOCKS``
    left. A running median of three comes first, so that a single stall moves no cut.
    """
    furthest = max(0, min(len(blocks) // 2, len(blocks) - LEAST_STEADY_BLOCKS))
    if furthest == 0:
        return (), tuple(blocks)
    times = _times_per_step(blocks)
    times[1:-1] = np.median([times[:-2], times[1:-1], times[2:]], axis=0)
    rounding = (_ROUNDING * float(times.mean())) ** 2
    errors = [max(float(np.var(times[cut:])), rounding) / (len(times) - cut) for cut in range(furthest + 1)]
    cut = int(np.argmin(errors))
    return tuple(blocks[:cut]), tuple(blocks[cut:])


def steady_blocks(blocks: Visit) -> tuple[tuple[BlockTiming, ...], tuple[BlockTiming, ...]]:
    """Return the warm-up of a visit and the blocks that count.

    The very first block never counts, where there are more: some libraries prepare themselves in it. Nor do
    single steps before blocks of so many that the cost of a call can be told from them.
    """
    first, rest = tuple(blocks[:1]), tuple(blocks[1:])
    if not rest:
        return (), first
    several = next((place for place, block in enumerate(rest) if block.steps > 1), 0)
    if any(block.steps < LEAST_STEPS_OF_A_BLOCK for block in rest[several:]):
        several = 0
    warm_up, steady = split_warm_up(rest[several:])
    return (*first, *rest[:several], *warm_up), steady


def time_per_step(visits: Sequence[Visit], spread: VisitSpread | None = None) -> Interval:
    """Return the mean time per step (s) over visits with a block at least, with its 95 % interval.

    The mean and not the median, since totals are predicted from it. Stalls in up to one block in twenty
    are clipped (always a single one), more of them are part of the mean. The interval adds to ``DRIFT``, in
    quadrature, the error of sampling blocks or, where it is larger, that of sampling visits, whose
    ``spread`` is known.
    """
    steady = _steady(visits)
    half_width = math.hypot(_sampling_error(steady, spread), DRIFT)
    return interval_around(float(np.mean(_means(steady))), half_width)


def visit_spread(sizes: Iterable[Sequence[Visit]]) -> VisitSpread:
    """Return how much visits of the same batch size differ, pooled over ``sizes``, with what is usual.

    The variance is a weighted mean of what is usual and the sum of squares within batch sizes, by degrees
    of freedom (scaled inverse chi-squared prior; Gelman et al., Bayesian Data Analysis, section 2.6).
    """
    squares, freedom = USUAL_SPREAD.freedom * USUAL_SPREAD.deviation**2, USUAL_SPREAD.freedom
    for visits in sizes:
        logs = np.log(_means(_steady(visits))) if len(visits) > 1 else np.zeros(1)
        squares += float(np.sum((logs - logs.mean()) ** 2))
        freedom += len(logs) - 1
    return VisitSpread(math.sqrt(squares / freedom), freedom)


def precise_enough(visits: Sequence[Visit], spread: VisitSpread, precision: float) -> bool:
    """Return whether the relative half-width of the interval without ``DRIFT`` is at most ``precision``.

    Two visits at least: to stop where the blocks of one happen to agree would prefer times of calm.
    """
    return len(visits) > 1 and _sampling_error(_steady(visits), spread) <= precision


def without_call_overhead(blocks: Visit, warm_up: Visit) -> tuple[BlockTiming, ...]:
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


@dataclass(frozen=True)
class _SteadyVisit:
    """Times per step (s) of the blocks that count, and the steps of each; both of shape (blocks,)."""

    times: Floats
    steps: Floats


def _steady(visits: Sequence[Visit]) -> Sequence[_SteadyVisit]:
    """Return what counts of each visit; lone stalls are clipped over all of them."""
    counted = []
    for visit in visits:
        warm_up, steady = steady_blocks(visit)
        counted.append(without_call_overhead(steady, warm_up))
    clipped = _clip_lone_stalls(np.concatenate([_times_per_step(blocks) for blocks in counted]))
    ends = np.cumsum([len(blocks) for blocks in counted])[:-1]
    return [
        _SteadyVisit(times, np.array([block.steps for block in blocks], dtype=np.float64))
        for times, blocks in zip(np.split(clipped, ends), counted, strict=True)
    ]


def _times_per_step(blocks: Visit) -> Floats:
    return np.array([block.seconds / block.steps for block in blocks], dtype=np.float64)


def _means(visits: Sequence[_SteadyVisit]) -> Floats:
    """Return the mean time per step (s) of each visit, shape (visits,)."""
    return np.array([np.average(visit.times, weights=visit.steps) for visit in visits])


def _sampling_error(visits: Sequence[_SteadyVisit], spread: VisitSpread | None) -> float:
    """Return the relative half-width (95 %) from sampling blocks, or from sampling visits if larger."""
    within = math.sqrt(sum(_half_width(visit) ** 2 for visit in visits)) / len(visits)
    if spread is None:
        return within
    between = student_quantile(0.95, spread.freedom) * spread.deviation / math.sqrt(len(visits))
    return max(within, between)


def _half_width(visit: _SteadyVisit) -> float:
    if len(visit.times) == 1:
        return _SPREAD_OF_ONE_BLOCK
    error, freedom = standard_error(visit.times, visit.steps)
    mean = float(np.average(visit.times, weights=visit.steps))
    return student_quantile(0.95, freedom) * error / mean


def _clip_lone_stalls(times: Floats) -> Floats:
    """Clip blocks far above the rest, unless they are more than one in twenty (and more than one)."""
    median = float(np.median(times))
    fence = median + _STALL_FENCE * max(robust_spread(times), _LEAST_SPREAD * median)
    lone = np.count_nonzero(times > fence) <= max(1, _LONE * len(times))
    return np.minimum(times, fence) if lone else times
