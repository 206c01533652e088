"""What a measured sweep says beside its numbers, in plain sentences."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from advisor.analysis.bottleneck_words import Growth, pipeline_sentences
from advisor.analysis.memory_growth import NEAR_LIMIT
from advisor.analysis.quantities import number, percent
from advisor.analysis.statistics import spread_factor
from advisor.records.bottleneck import Bottleneck, BottleneckKind, InputDiagnosis
from advisor.records.measurement import BatchThroughput, MeasurementOutcome, MeasurementRun

FALL = 0.95
"""Throughput below this share of that at the next smaller batch size has fallen."""
UNCERTAIN = 1.25
"""A time per step whose bounds differ by more than this factor is worth a sentence."""
COMPETING_CPUS = 0.2
"""Other programs that keep more processors busy than this disturb a measurement."""

_WHAT_THE_NEXT_EXCEEDS: Mapping[BottleneckKind | None, str] = {
    BottleneckKind.MEMORY: " (the next one exceeds the memory)",
    BottleneckKind.DATA: " (the next one exceeds the training split)",
}


def notes(
    run: MeasurementRun, table: Sequence[BatchThroughput], saturation: int | None, growth: Growth
) -> Iterator[str]:
    """Yield what a reader should know of ``table`` (ascending), the summary of ``run``.

    ``growth`` is what it says of batch sizes larger than those that ran.
    """
    ran = [row for row in table if row.throughput_examples_per_s is not None]
    if not ran:
        yield "No batch size ran."
    elif growth.still_grew is None:
        yield "One batch size alone says nothing of growth and saturation."
    elif saturation is None:
        yield _still_growing(ran[-1].batch_size, growth)
    fallen = [high.batch_size for low, high in pairwise(ran) if _fell(low, high)]
    if fallen:
        yield f"Throughput fell from the next smaller batch size at {_listed(fallen)}."
    for row in table:
        if row.outcome in (MeasurementOutcome.FAILED, MeasurementOutcome.TIMEOUT):
            why = row.detail.partition("\n")[0]
            yield f"Batch size {row.batch_size:,} failed, which is no limit of memory: {why}"
    uncertain = [row.batch_size for row in ran if _is_uncertain(row)]
    if uncertain:
        yield (
            f"The time per step at {_these(uncertain, ran)} is uncertain: measure again (--again) while "
            "the machine does nothing else, or for longer (--seconds)."
        )
    near = [row.batch_size for row in ran if row.near_memory_limit]
    if near:
        yield f"Batch size {_listed(near)} ran with less than {percent(1 - NEAR_LIMIT)} of the memory free."
    yield from _of_the_machine(run, ran)


def notes_on_the_pipeline(diagnosis: InputDiagnosis | None, verdict: Bottleneck) -> Iterator[str]:
    """Yield what was found in an input pipeline, but for what a ``verdict`` about it says."""
    if diagnosis is not None and diagnosis.unused_features:
        named, share = ", ".join(diagnosis.unused_features), percent(diagnosis.unused_share)
        yield f"The model never reads {named} ({share} of each example's bytes): leave it out of the data."
    if verdict.kind is not BottleneckKind.INPUT:
        yield from pipeline_sentences(diagnosis)


def _of_the_machine(run: MeasurementRun, ran: Sequence[BatchThroughput]) -> Iterator[str]:
    load = {row.batch_size: row.competing_cpus or 0.0 for row in run.measurements}
    disturbed = sorted(size for size, cpus in load.items() if cpus > COMPETING_CPUS)
    if disturbed:
        worst = number(float(max(load.values())))
        yield (
            f"Other programs kept up to {worst} processors busy while {_these(disturbed, ran)} was measured: "
            "these times are longer than on a free machine."
        )
    on_the_gpu = sorted({name for row in run.measurements for name in row.gpu_processes})
    if on_the_gpu:
        yield f"Other programs used the GPU meanwhile: {', '.join(on_the_gpu)}."


def _still_growing(largest: int, growth: Growth) -> str:
    said = "not confirmed: throughput stopped growing only at"
    if growth.still_grew:
        said = "not reached: throughput still grew at"
    why = _WHAT_THE_NEXT_EXCEEDS.get(growth.limit_above, "")
    return f"Saturation {said} the largest batch size, {number(largest)}{why}."


def _fell(smaller: BatchThroughput, larger: BatchThroughput) -> bool:
    """Return whether throughput fell by more than a little, and by more than the intervals leave open."""
    before, after = smaller.throughput_examples_per_s, larger.throughput_examples_per_s
    if before is None or after is None:
        return False
    return after.estimate < FALL * before.estimate and after.high < before.low


def _is_uncertain(row: BatchThroughput) -> bool:
    return row.time_per_step_s is not None and spread_factor(row.time_per_step_s) > UNCERTAIN


def _these(sizes: Sequence[int], ran: Sequence[BatchThroughput]) -> str:
    return "every batch size" if len(sizes) == len(ran) > 1 else f"batch size {_listed(sizes)}"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(number(size) for size in sizes)
