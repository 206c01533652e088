"""A measured sweep for people: the verdict, the table, the limits, and what was compared."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from advisor.analysis.quantities import count, duration, memory, number, percent
from advisor.records.bottleneck import Bottleneck, InputDiagnosis
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, Comparison, MeasurementOutcome, Throughput
from advisor.reporting.render import about_duration, bullet, heading, minute, pairs, paragraph, table

LEAST_SHOWN = 0.01
"""Smaller shares of a step are left out."""


def throughput_parts(throughput: Throughput) -> Iterator[RenderableType]:
    """Yield everything that a measured sweep says."""
    where = throughput.configuration
    yield paragraph(
        f"Training throughput of {throughput.workload} on {where.devices} × {where.device_kind}, "
        f"{where.precision}{', XLA' if where.xla else ''}, measured {minute(throughput.measured_at)}."
    )
    yield paragraph("")
    yield table(
        ("batch\nsize", "examples\nper s", "time per step", "doubling", "peak\nmemory", "outcome"),
        [_row(row) for row in throughput.table],
        left=("outcome",),
    )
    yield paragraph(" ".join(_legend(throughput.table)))
    yield paragraph("")
    yield pairs(_limits(throughput))
    yield from (bullet(note) for note in throughput.notes)
    if throughput.bottleneck is not None:
        yield from _verdict(throughput.bottleneck)
    if throughput.diagnosis is not None and throughput.diagnosis.stages:
        yield from _stages(throughput.diagnosis)
    if throughput.comparisons:
        yield from _compared(throughput.comparisons)


def _legend(rows: Sequence[BatchThroughput]) -> Iterator[str]:
    """Yield what the columns mean that are shown."""
    if any(row.doubling_efficiency is not None for row in rows):
        yield (
            "Doubling: growth of throughput over half the batch size, and its efficiency, 100 % where "
            "throughput doubles."
        )
    if any(row.peak_memory_bytes is not None for row in rows):
        yield "Peak memory: resident, with all libraries; a memory limit bounds the data alone."
    if any(row.time_per_step_s is not None for row in rows):
        yield "In brackets: 95 % intervals."


def _row(row: BatchThroughput) -> tuple[str, ...]:
    speed, gain, efficiency = row.throughput_examples_per_s, row.doubling_gain, row.doubling_efficiency
    return (
        number(row.batch_size),
        count(speed.estimate) if speed else "",
        about_duration(row.time_per_step_s),
        f"{gain * 100:+.0f} %, {percent(efficiency)}" if gain is not None else "",
        memory(row.peak_memory_bytes) if row.peak_memory_bytes is not None else "",
        "near limit" if row.near_memory_limit else _outcome(row.outcome),
    )


def _outcome(outcome: MeasurementOutcome) -> str:
    if outcome is MeasurementOutcome.DATASET_LIMITED:
        return "data limited"
    return outcome.value.replace("_", " ")


def _limits(throughput: Throughput) -> Iterator[tuple[str, str]]:
    saturation = throughput.saturation_batch_size
    largest = throughput.largest_feasible_batch_size
    untried = largest is not None and throughput.table[-1].batch_size == largest
    yield (
        "largest feasible batch size",
        number(largest) + (" (larger ones were not tried)" if untried else ""),
    )
    yield "saturation batch size", number(saturation) if saturation else "not reached"
    model = throughput.time_model
    if model is not None:
        yield (
            "time per step",
            f"about {duration(model.fixed_s)} + {duration(model.per_example_s)} per example "
            f"(off by {percent(model.residual_log_rms)})",
        )


def _verdict(found: Bottleneck) -> Iterator[RenderableType]:
    yield heading(f"What limits it: {found.kind.value}")
    yield paragraph(f"{found.verdict} {found.why}".strip())
    shares = [
        f"{kind.value} {percent(share)}" for kind, share in found.shares.items() if share >= LEAST_SHOWN
    ]
    if shares:
        yield paragraph(f"Shares of a step, which may overlap: {', '.join(shares)}.")
    yield from (bullet(sentence) for sentence in found.next)


def _stages(diagnosis: InputDiagnosis) -> Iterator[RenderableType]:
    yield heading("The input pipeline, stage by stage")
    total = sum(stage.time_per_example_s for stage in diagnosis.stages) or 1.0
    rows = [
        (stage.name, duration(stage.time_per_example_s), percent(stage.time_per_example_s / total))
        for stage in diagnosis.stages
    ]
    yield table(("stage", "time per example", "share"), rows, left=("stage",))


def _compared(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    yield heading("Compared: steps are so many times as fast")
    sizes = sorted({size for comparison in comparisons for size in comparison.speedups})
    columns = ("batch size", *(comparison.variant for comparison in comparisons))
    rows = [
        (number(size), *(_speedup(comparison.speedups.get(size)) for comparison in comparisons))
        for size in sizes
    ]
    yield table(columns, rows)
    for comparison in comparisons:
        if comparison.speedups:
            yield bullet(f"{comparison.variant}: {_conclusion(comparison)}")
        yield from (bullet(f"{comparison.variant}: {failure}") for failure in comparison.failures)


def _conclusion(comparison: Comparison) -> str:
    """Return where the whole interval is on one side of 1."""
    faster = [number(size) for size, speedup in comparison.speedups.items() if speedup.low > 1]
    slower = [number(size) for size, speedup in comparison.speedups.items() if speedup.high < 1]
    found = [
        f"{word} at batch size {', '.join(sizes)}"
        for word, sizes in (("faster", faster), ("slower", slower))
        if sizes
    ]
    return f"{'; '.join(found) or 'neither faster nor slower beyond the intervals'}."


def _speedup(interval: Interval | None) -> str:
    if interval is None:
        return "did not run"
    return f"{interval.estimate:.2f} ({interval.low:.2f}–{interval.high:.2f})"
