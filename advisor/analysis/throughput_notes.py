"""What a measured sweep says beside its numbers, in plain sentences."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.analysis.quantities import number
from advisor.analysis.statistics import spread_factor
from advisor.records.measurement import BatchThroughput, MeasurementOutcome

FALL = 0.95
"""Throughput below this share of that at the next smaller batch size has fallen."""
UNCERTAIN = 1.25
"""A time per step whose bounds differ by more than this factor is worth a sentence."""

_WHAT_THE_NEXT_EXCEEDS = {
    MeasurementOutcome.OUT_OF_MEMORY: "the memory",
    MeasurementOutcome.DATASET_LIMITED: "the training split",
}


def notes(table: Sequence[BatchThroughput], saturation: int | None, grew_last: bool) -> Iterator[str]:
    """Yield what a reader should know of ``table`` (ascending).

    ``grew_last`` says whether the largest batch size that ran still gained throughput.
    """
    ran = [row for row in table if row.throughput_examples_per_s is not None]
    if not ran:
        yield "No batch size ran."
    elif saturation is None:
        yield _still_growing(table, ran[-1].batch_size, grew_last)
    fallen = [high.batch_size for low, high in pairwise(ran) if _fell(low, high)]
    if fallen:
        yield f"Throughput fell from the next smaller batch size at {_listed(fallen)}."
    for row in table:
        if row.outcome in (MeasurementOutcome.FAILED, MeasurementOutcome.TIMEOUT):
            yield f"Batch size {row.batch_size:,} failed, which is no limit of memory: {row.detail}"
    uncertain = [row.batch_size for row in ran if _is_uncertain(row)]
    if uncertain:
        yield (
            f"The time per step at batch size {_listed(uncertain)} is uncertain: measure it for longer, or "
            "while the machine does nothing else."
        )


def _still_growing(table: Sequence[BatchThroughput], largest: int, grew_last: bool) -> str:
    said = "not confirmed: throughput stopped growing only at"
    if grew_last:
        said = "not reached: throughput still grew at"
    above = (row.outcome for row in table if row.batch_size > largest)
    limits = [_WHAT_THE_NEXT_EXCEEDS[outcome] for outcome in above if outcome in _WHAT_THE_NEXT_EXCEEDS]
    why = f" (the next one exceeds {limits[0]})" if limits else ""
    return f"Saturation {said} the largest batch size, {number(largest)}{why}."


def _fell(smaller: BatchThroughput, larger: BatchThroughput) -> bool:
    before, after = smaller.throughput_examples_per_s, larger.throughput_examples_per_s
    return before is not None and after is not None and after.estimate < FALL * before.estimate


def _is_uncertain(row: BatchThroughput) -> bool:
    return row.time_per_step_s is not None and spread_factor(row.time_per_step_s) > UNCERTAIN


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(number(size) for size in sizes)
