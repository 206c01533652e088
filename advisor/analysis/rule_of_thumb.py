"""The largest batch size that the hardware supports: what is known before any training."""

import math
from collections.abc import Iterator, Sequence

from advisor.analysis.quantities import number
from advisor.records.measurement import BatchThroughput, MeasurementOutcome, Throughput
from advisor.records.recommendation import RuleOfThumb
from advisor.records.requests import BatchSizes

_ENDS = {
    MeasurementOutcome.OUT_OF_MEMORY: "a larger one, {size}, runs out of memory",
    MeasurementOutcome.DATASET_LIMITED: "the training split cannot fill a larger one",
    MeasurementOutcome.FAILED: "a larger one, {size}, failed",
    MeasurementOutcome.TIMEOUT: "a larger one, {size}, did not answer in time",
}


def rule_of_thumb(throughput: Throughput, asked: BatchSizes, next_command: str) -> RuleOfThumb | None:
    """Return the largest of the ``asked`` batch sizes that ran, but none above saturation; None without one.

    Above the saturation batch size a larger batch makes a step longer in proportion, so that it can gain
    nothing but fewer steps per example, which nobody has seen.
    """
    ran = [
        row
        for row in throughput.table
        if row.time_per_step_s is not None and _is_asked(row.batch_size, asked)
    ]
    if not ran:
        return None
    saturation = throughput.saturation_batch_size
    fitting = [row for row in ran if saturation is None or row.batch_size <= saturation]
    chosen = fitting[-1] if fitting else ran[0]
    bounded = chosen is not ran[-1]
    return RuleOfThumb(
        throughput=throughput,
        batch_size=chosen.batch_size,
        why=_saturated(chosen, ran[-1]) if bounded else _largest(chosen, throughput.table),
        caveats=tuple(_caveats(chosen, throughput, bounded)),
        next=next_command,
    )


def _is_asked(batch_size: int, asked: BatchSizes) -> bool:
    if asked.listed:
        return batch_size in asked.listed
    return asked.minimum <= batch_size <= (asked.maximum or math.inf)


def _saturated(chosen: BatchThroughput, largest: BatchThroughput) -> str:
    return (
        f"Batch size {chosen.batch_size:,} is the largest up to which throughput grows: "
        f"{largest.batch_size:,} runs too, but processes examples hardly faster."
    )


def _largest(chosen: BatchThroughput, table: Sequence[BatchThroughput]) -> str:
    above = next((row for row in table if row.batch_size > chosen.batch_size), None)
    end = "no larger one was measured"
    if above is not None:
        end = _ENDS.get(above.outcome, "no larger one was asked for").format(size=number(above.batch_size))
    return f"Batch size {chosen.batch_size:,} is the largest that ran: {end}."


def _caveats(chosen: BatchThroughput, throughput: Throughput, bounded: bool) -> Iterator[str]:
    yield (
        "This is a rule of thumb and not an answer: no training was done, so how many steps each batch size "
        "needs to a target is not known. Beyond the critical batch size a larger one needs hardly fewer."
    )
    if not bounded and throughput.saturation_batch_size is None:
        yield "Throughput still grew at the largest batch size measured, so saturation was not seen."
    if chosen.near_memory_limit:
        yield f"Batch size {chosen.batch_size:,} ran with little memory to spare."
