"""Time per step and training throughput from raw blocks, and where throughput stops growing."""

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.analysis.bottleneck import find_bottleneck, limit_above
from advisor.analysis.bottleneck_words import Growth
from advisor.analysis.memory_growth import is_near_limit
from advisor.analysis.step_parts import StepParts
from advisor.analysis.step_times import steady_blocks, time_per_step, without_call_overhead
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


def summarize(run: MeasurementRun) -> Throughput:
    """Return the table, the limits and the time model of a measured sweep."""
    in_order = sorted(run.measurements, key=lambda measurement: measurement.batch_size)
    table = _with_doubling_efficiency([summarize_batch(measurement) for measurement in in_order])
    ran = [row for row in table if row.time_per_step_s is not None]
    saturation, model = saturation_batch_size(ran), fit_time_model(ran)
    reference = reference_batch_size(table)
    still_grew = saturation is None and _grew_last(ran)
    limit = limit_above(table, ran[-1].batch_size) if ran else None
    parts = next((step_parts(row) for row in in_order if row.batch_size == reference), None)
    diagnosis = parts.diagnosis if parts else None
    verdict = find_bottleneck(parts, Growth(still_grew, limit, model))
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
        notes=(*notes(run, table, saturation, still_grew), *notes_on_the_pipeline(diagnosis, verdict)),
    )


def reference_batch_size(table: Sequence[BatchThroughput]) -> int | None:
    """Return the batch size of the verdict: the saturation, else the fastest per example."""
    ran = [row for row in table if row.throughput_examples_per_s is not None]
    fastest = max(ran, key=_throughput, default=None)
    return saturation_batch_size(ran) or (fastest.batch_size if fastest else None)


def step_parts(measured: BatchMeasurement) -> StepParts:
    """Return what was timed at a batch size, which ran."""
    row = summarize_batch(measured)
    assert row.time_per_step_s is not None
    return StepParts(
        row=row,
        time_s=row.time_per_step_s,
        host_s=_host_s(measured.compute_blocks),
        workers_s=tuple(time_per_step(blocks).estimate for blocks in measured.worker_blocks),
        diagnosis=measured.diagnosis,
    )


def summarize_batch(measurement: BatchMeasurement) -> BatchThroughput:
    """Return the summary of one batch size; its doubling efficiency needs a neighbour and stays None."""
    ran = measurement.outcome is MeasurementOutcome.OK and bool(measurement.blocks)
    time_s = _steady_time((*measurement.warm_up_blocks, *measurement.blocks)) if ran else None
    return BatchThroughput(
        batch_size=measurement.batch_size,
        outcome=measurement.outcome,
        detail=measurement.detail,
        time_per_step_s=time_s,
        throughput_examples_per_s=time_s.inverse(measurement.batch_size) if time_s else None,
        compile_s=measurement.compile_s,
        peak_memory_bytes=measurement.memory.peak_bytes,
        steps_timed=sum(block.steps for block in measurement.blocks),
        doubling_efficiency=None,
        compute_time_s=_steady_time(measurement.compute_blocks),
        input_time_s=_steady_time(measurement.input_blocks),
        near_memory_limit=ran and is_near_limit(measurement.memory),
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


def _steady_time(blocks: Sequence[BlockTiming]) -> Interval | None:
    """Return the time per step of all blocks in their order, the first of which are warm-up."""
    warm_up, steady = steady_blocks(blocks)
    return time_per_step(without_call_overhead(steady, warm_up)) if steady else None


def _host_s(blocks: Sequence[BlockTiming]) -> float | None:
    _, steady = steady_blocks(blocks)
    steps = sum(block.steps for block in steady)
    return sum(block.host_seconds for block in steady) / steps if steps else None


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
