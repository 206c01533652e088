"""Time per step and training throughput from raw blocks, and where throughput stops growing."""

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.analysis.bottleneck import find_bottleneck, limit_above
from advisor.analysis.bottleneck_words import Growth
from advisor.analysis.memory_growth import is_near_limit
from advisor.analysis.step_parts import StepParts
from advisor.analysis.step_times import VisitSpread, steady_blocks, time_per_step, visit_spread
from advisor.analysis.throughput_notes import notes, notes_on_the_pipeline
from advisor.analysis.time_model import fit_time_model
from advisor.records.intervals import Interval
from advisor.records.measurement import (
    BatchMeasurement,
    BatchThroughput,
    MeasurementOutcome,
    MeasurementRun,
    Throughput,
)
from advisor.records.session import BlockTiming

LEAST_GAIN = 0.05
"""Throughput that grows by less than this share per doubling of the batch size has stopped growing."""
SIZES_WITHOUT_GAIN = 2
"""So many sizes in a row have to show no gain, since single dips happen."""
APART = math.sqrt(2)
"""Batch sizes closer than this factor say nothing about growth: noise is as large as what they gain."""


def summarize(run: MeasurementRun) -> Throughput:
    """Return the table, the limits and the time model of a measured sweep."""
    in_order = sorted(run.measurements, key=lambda measurement: measurement.batch_size)
    spread = visit_spread(row.visits for row in in_order)
    table = _with_doubling_efficiency([summarize_batch(measurement, spread) for measurement in in_order])
    ran = [row for row in table if row.time_per_step_s is not None]
    saturation, model = saturation_batch_size(ran), fit_time_model(ran)
    reference = reference_batch_size(table)
    growth = Growth(
        still_grew=_grew_last(apart(ran)) if saturation is None else False,
        limit_above=limit_above(table, ran[-1].batch_size) if ran else None,
        time_model=model,
    )
    parts = next((step_parts(row, spread) for row in in_order if row.batch_size == reference), None)
    diagnosis = parts.diagnosis if parts else None
    verdict = find_bottleneck(parts, growth)
    return Throughput(
        workload=run.workload,
        fingerprint=run.fingerprint.timing,
        configuration=run.configuration,
        environment=run.environment,
        measured_at=run.measured_at,
        table=table,
        largest_feasible_batch_size=ran[-1].batch_size if ran else None,
        saturation_batch_size=saturation,
        time_model=model,
        bottleneck=verdict,
        diagnosis=diagnosis,
        notes=(*notes(run, table, saturation, growth), *notes_on_the_pipeline(diagnosis, verdict)),
    )


def reference_batch_size(table: Sequence[BatchThroughput]) -> int | None:
    """Return the batch size of the verdict: the saturation, else the fastest per example."""
    ran = [row for row in table if row.throughput_examples_per_s is not None]
    fastest = max(ran, key=_throughput, default=None)
    return saturation_batch_size(ran) or (fastest.batch_size if fastest else None)


def step_parts(measured: BatchMeasurement, spread: VisitSpread | None = None) -> StepParts:
    """Return what was timed at a batch size, which ran; as :func:`summarize_batch`."""
    row = summarize_batch(measured, spread)
    assert row.time_per_step_s is not None
    return StepParts(
        row=row,
        time_s=_time_of_part(measured.together_blocks, spread) or row.time_per_step_s,
        host_s=_host_s(measured.compute_blocks),
        workers_s=tuple(time_per_step([blocks]).estimate for blocks in measured.worker_blocks),
        diagnosis=measured.diagnosis,
    )


def summarize_batch(measurement: BatchMeasurement, spread: VisitSpread | None = None) -> BatchThroughput:
    """Return the summary of one batch size; its doubling efficiency needs a neighbour and stays None.

    ``spread`` is how much visits differ over the whole sweep, None where that does not matter.
    """
    ran = measurement.outcome is MeasurementOutcome.OK and bool(measurement.visits)
    time_s = time_per_step(measurement.visits, spread) if ran else None
    return BatchThroughput(
        batch_size=measurement.batch_size,
        outcome=measurement.outcome,
        detail=measurement.detail,
        time_per_step_s=time_s,
        throughput_examples_per_s=time_s.inverse(measurement.batch_size) if time_s else None,
        compile_s=measurement.compile_s,
        peak_memory_bytes=measurement.memory.peak_bytes,
        steps_timed=sum(block.steps for visit in measurement.visits for block in steady_blocks(visit)[1]),
        doubling_efficiency=None,
        compute_time_s=_time_of_part(measurement.compute_blocks, spread),
        input_time_s=_time_of_part(measurement.input_blocks, spread),
        near_memory_limit=ran and is_near_limit(measurement.memory),
    )


def saturation_batch_size(rows: Sequence[BatchThroughput]) -> int | None:
    """Return the batch size from which throughput no longer grows, or None where it still grew.

    ``rows`` are in ascending order. It is the size after which ``SIZES_WITHOUT_GAIN`` sizes in a row, all
    of them ``APART``, gain less than ``LEAST_GAIN`` per doubling over it, and no larger one is faster
    beyond its interval.
    """
    ran = apart([row for row in rows if row.throughput_examples_per_s is not None])
    last_gain, without_gain = None, 0
    for place, row in enumerate(ran):
        if last_gain is None or gain_per_doubling(last_gain, row) >= LEAST_GAIN:
            last_gain, without_gain = row, 0
        else:
            without_gain += 1
        larger = ran[place + 1 :]
        if without_gain >= SIZES_WITHOUT_GAIN and not any(_is_faster(one, last_gain) for one in larger):
            return last_gain.batch_size
    return None


def apart(rows: Sequence[BatchThroughput]) -> Sequence[BatchThroughput]:
    """Return the ascending ``rows`` that are larger than the one before by the factor ``APART`` at least."""
    kept: list[BatchThroughput] = []
    for row in rows:
        if not kept or row.batch_size >= APART * kept[-1].batch_size:
            kept.append(row)
    return kept


def gain_per_doubling(smaller: BatchThroughput, larger: BatchThroughput) -> float:
    """Return the relative growth of throughput for each doubling from one measured size to a larger."""
    ratio = _throughput(larger) / _throughput(smaller)
    return float(ratio ** (1 / math.log2(larger.batch_size / smaller.batch_size)) - 1)


def _time_of_part(blocks: Sequence[BlockTiming], spread: VisitSpread | None) -> Interval | None:
    return time_per_step([blocks], spread) if blocks else None


def _host_s(blocks: Sequence[BlockTiming]) -> float | None:
    _, steady = steady_blocks(blocks)
    steps = sum(block.steps for block in steady)
    return sum(block.host_seconds for block in steady) / steps if steps else None


def _throughput(row: BatchThroughput) -> float:
    assert row.throughput_examples_per_s is not None
    return row.throughput_examples_per_s.estimate


def _is_faster(one: BatchThroughput, other: BatchThroughput) -> bool:
    fast, slow = one.throughput_examples_per_s, other.throughput_examples_per_s
    return fast is not None and slow is not None and fast.low > slow.high


def _grew_last(ran: Sequence[BatchThroughput]) -> bool | None:
    return gain_per_doubling(ran[-2], ran[-1]) >= LEAST_GAIN if len(ran) > 1 else None


def _with_doubling_efficiency(rows: Sequence[BatchThroughput]) -> tuple[BatchThroughput, ...]:
    ran = {row.batch_size: row for row in rows if row.time_per_step_s is not None}

    def efficiency(size: int) -> float | None:
        if size not in ran or size % 2 or size // 2 not in ran:
            return None
        return _throughput(ran[size]) / _throughput(ran[size // 2]) / 2

    return tuple(replace(row, doubling_efficiency=efficiency(row.batch_size)) for row in rows)
