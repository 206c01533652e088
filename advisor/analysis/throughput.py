"""Time per step and training throughput from raw blocks, and where throughput stops growing."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize

from advisor.analysis.statistics import (
    Floats,
    interval_around,
    robust_spread,
    standard_error,
    student_quantile,
)
from advisor.analysis.throughput_notes import notes
from advisor.records.intervals import Interval
from advisor.records.measurement import (
    BatchMeasurement,
    BatchThroughput,
    MeasurementOutcome,
    MeasurementRun,
    Throughput,
    TimeModel,
)
from advisor.records.session import BlockTiming

DRIFT = 0.02
"""Relative half-width that no number of blocks narrows: a shared machine drifts by this much."""
LEAST_STEADY_BLOCKS = 5
"""With fewer blocks left, warm-up cannot be told from noise."""
LEAST_GAIN = 0.05
"""Throughput that grows by less than this share per doubling of the batch size has stopped growing."""
SIZES_WITHOUT_GAIN = 2
"""So many sizes in a row have to show no gain, since single dips happen."""

_STALL_FENCE = 6.0
_LEAST_SPREAD = 0.005
_LONE = 0.05
_ROUNDING = 1e-9
_NEGLIGIBLE_SHARE = 1e-6
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


def summarize(run: MeasurementRun) -> Throughput:
    """Return the table, the limits and the time model of a measured sweep."""
    in_order = sorted(run.measurements, key=lambda measurement: measurement.batch_size)
    table = _with_doubling_efficiency([summarize_batch(measurement) for measurement in in_order])
    ran = [row for row in table if row.time_per_step_s is not None]
    saturation = saturation_batch_size(ran)
    return Throughput(
        workload=run.workload,
        fingerprint=run.fingerprint.timing,
        configuration=run.configuration,
        environment=run.environment,
        measured_at=run.measured_at,
        table=table,
        largest_feasible_batch_size=ran[-1].batch_size if ran else None,
        saturation_batch_size=saturation,
        time_model=fit_time_model(ran),
        notes=tuple(notes(table, saturation, _grew_last(ran))),
    )


def summarize_batch(measurement: BatchMeasurement) -> BatchThroughput:
    """Return the summary of one batch size; its doubling efficiency needs a neighbour and stays None."""
    ran = measurement.outcome is MeasurementOutcome.OK and bool(measurement.blocks)
    time_s = time_per_step(measurement.blocks) if ran else None
    return BatchThroughput(
        batch_size=measurement.batch_size,
        outcome=measurement.outcome,
        detail=measurement.detail,
        time_per_step_s=time_s,
        throughput_examples_per_s=time_s.inverse(measurement.batch_size) if time_s else None,
        compile_s=measurement.compile_s,
        peak_memory_bytes=measurement.peak_memory_bytes,
        steps_timed=sum(block.steps for block in measurement.blocks),
        doubling_efficiency=None,
    )


def saturation_batch_size(rows: Sequence[BatchThroughput]) -> int | None:
    """Return the batch size from which throughput no longer grows, or None where it still grew.

    ``rows`` are in ascending order. It is the size after which ``SIZES_WITHOUT_GAIN`` sizes in a row gain
    less than ``LEAST_GAIN`` per doubling over it.
    """
    last_gain, without_gain = None, 0
    for row in rows:
        if row.throughput_examples_per_s is None:
            continue
        if last_gain is None or gain_per_doubling(last_gain, row) >= LEAST_GAIN:
            last_gain, without_gain = row, 0
        else:
            without_gain += 1
        if without_gain == SIZES_WITHOUT_GAIN:
            return last_gain.batch_size
    return None


def gain_per_doubling(smaller: BatchThroughput, larger: BatchThroughput) -> float:
    """Return the relative growth of throughput for each doubling from one measured size to a larger."""
    ratio = _throughput(larger) / _throughput(smaller)
    return float(ratio ** (1 / math.log2(larger.batch_size / smaller.batch_size)) - 1)


def fit_time_model(rows: Sequence[BatchThroughput]) -> TimeModel | None:
    """Fit time per step = fixed + per example × batch size to at least three measured sizes.

    Both parts are at least 0; the error is that of the logarithm, so that every size counts alike, with a
    robust loss, since single sizes may run on another program of the device.
    """
    measured = [(row.batch_size, row.time_per_step_s.estimate) for row in rows if row.time_per_step_s]
    if len(measured) < 3:
        return None
    sizes, times = np.array(measured, dtype=np.float64).T
    relative = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    scale = 1 / relative.max(axis=0)
    design = relative * scale

    def log_residuals(parts: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(design @ parts, 1e-12)), dtype=np.float64)

    start = np.maximum(optimize.nnls(design, np.ones_like(sizes))[0], 1e-6)
    fit = optimize.least_squares(log_residuals, start, bounds=(0, np.inf), loss="soft_l1", f_scale=0.1)
    fixed_s, per_example_s = np.where(fit.x > _NEGLIGIBLE_SHARE, fit.x, 0.0) * scale
    rms = float(np.sqrt(np.mean(log_residuals(fit.x) ** 2)))
    return TimeModel(float(fixed_s), float(per_example_s), rms)


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


def _throughput(row: BatchThroughput) -> float:
    assert row.throughput_examples_per_s is not None
    return row.throughput_examples_per_s.estimate


def _grew_last(ran: Sequence[BatchThroughput]) -> bool:
    return len(ran) < 2 or gain_per_doubling(ran[-2], ran[-1]) >= LEAST_GAIN


def _with_doubling_efficiency(rows: Sequence[BatchThroughput]) -> tuple[BatchThroughput, ...]:
    ran = {row.batch_size: row for row in rows if row.time_per_step_s is not None}

    def efficiency(size: int) -> float | None:
        if size not in ran or size % 2 or size // 2 not in ran:
            return None
        return _throughput(ran[size]) / _throughput(ran[size // 2]) / 2

    return tuple(replace(row, doubling_efficiency=efficiency(row.batch_size)) for row in rows)
