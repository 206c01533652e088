"""A verdict in sentences: what it is, why, and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.quantities import duration, number, percent
from advisor.analysis.step_parts import Shares, StepParts, are_uncertain
from advisor.records.bottleneck import BottleneckKind, InputDiagnosis, Remedy
from advisor.records.intervals import Interval
from advisor.records.measurement import TimeModel

WORTHWHILE = 1.05
"""A remedy that makes steps less than this many times as fast, or perhaps no faster, is not proposed."""
MINOR_STAGE = 0.1
"""Stages below this share of the pipeline's time are not named."""

Words = tuple[str, str, Sequence[str]]

_FORBIDDEN: Mapping[BottleneckKind | None, str] = {
    BottleneckKind.MEMORY: "A larger batch would cost hardly more time per step, but does not fit.",
    BottleneckKind.DATA: "A larger batch would cost hardly more time per step, but the data cannot fill it.",
}


@dataclass(frozen=True)
class Growth:
    """What a sweep says of larger batch sizes: whether throughput still grew, and what ended it.

    ``still_grew`` is None where a single batch size ran, which shows no growth.
    """

    still_grew: bool | None
    limit_above: BottleneckKind | None = None
    time_model: TimeModel | None = None


def words(kind: BottleneckKind, parts: StepParts | None, growth: Growth, shares: Shares) -> Words:
    """Return the verdict of ``kind``, the reason for it, and what to do, most useful first."""
    if parts is None:
        return "No batch size ran, so nothing can be said.", "", ()
    share = percent(shares[kind].estimate) if kind in shares else "an unknown part"
    where = f"at batch size {number(parts.row.batch_size)}"
    return {
        BottleneckKind.INPUT: _input,
        BottleneckKind.HOST: _host,
        BottleneckKind.SYNCHRONIZATION: _synchronization,
        BottleneckKind.DISPATCH: _dispatch,
        BottleneckKind.MEMORY: _memory,
        BottleneckKind.DATA: _data,
        BottleneckKind.COMPUTE: _compute,
        BottleneckKind.UNKNOWN: _unknown,
    }[kind](parts, growth, share, where)


def _input(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    input_s, compute_s = parts.row.input_time_s, parts.row.compute_time_s
    verdict = f"The input pipeline limits training: {where} a step waits for data {share} of its time."
    why = _rates(parts)
    if input_s and compute_s and input_s.estimate <= compute_s.estimate:
        why += " The two take the processors from one another."
    return verdict, why, tuple(pipeline_sentences(parts.diagnosis))


def _host(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    return (
        f"Python functions inside the training step limit it: {where} they take {share} of its time.",
        f"Of {_about(parts.time_s)} per step, {duration(parts.host_s)} are spent in them (py_function or "
        "numpy_function), while the device waits.",
        ["Write them with TensorFlow or Keras operations, or call them once in many steps."],
    )


def _synchronization(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    times = ", ".join(duration(seconds) for seconds in parts.workers_s)
    slowest = max(range(len(parts.workers_s)), key=parts.workers_s.__getitem__)
    others = sorted(parts.workers_s)[: len(parts.workers_s) - 1]
    ratio = parts.workers_s[slowest] / (sum(others) / len(others))
    together = _about(parts.row.compute_time_s or parts.time_s)
    why = f"Alone, the workers take {times} per step; together {together}."
    if ratio > WORTHWHILE:
        following = f"Mend or replace worker {slowest}, {number(ratio)} × as slow as the others."
    else:
        following = "Give each worker a larger batch, or use a faster connection between them."
    return f"Workers wait for one another: {where} {share} of a step.", why, [following]


def _dispatch(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    following = "`advisor measure --compare xla` tries whether fusing operations helps."
    if parts.host_s:
        following = (
            "Write the Python functions inside the step (py_function, numpy_function) with TensorFlow or "
            "Keras operations: calling them costs more than the time in them."
        )
    return (
        f"Work that does not grow with the batch limits training: {where} it takes {share} of a step.",
        f"{_model(growth)} Such work is starting operations (dispatch) and updating the weights.",
        [_FORBIDDEN.get(growth.limit_above, "A larger batch costs hardly more time per step."), following],
    )


def _memory(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    return (
        f"Memory limits training: throughput still grew {where}, and the next size does not fit.",
        _model(growth),
        [
            "`--refine` finds the largest batch size that fits.",
            "`--compare mixed_precision` tries activations of half the size.",
            "Accumulating gradients would not raise throughput.",
        ],
    )


def _data(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    return (
        f"The number of training examples limits the batch size: throughput still grew {where}, the largest "
        "that they fill.",
        _model(growth),
        ["More training examples would allow larger batches; nothing about the machine has to change."],
    )


def _compute(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    why = _rates(parts) if parts.row.compute_time_s else _model(growth)
    return (
        f"Arithmetic limits training {where}: throughput hardly grows with the batch size.",
        why,
        [
            "Faster hardware, a smaller model, or lower precision (`advisor measure --compare "
            "mixed_precision,xla`) would speed it up."
        ],
    )


def _unknown(parts: StepParts, growth: Growth, share: str, where: str) -> Words:
    batch_size, compute_s = parts.row.batch_size, parts.row.compute_time_s
    if growth.still_grew is None or (growth.still_grew and not are_uncertain(parts)):
        only = "the only one that ran" if growth.still_grew is None else "where throughput still grew"
        return (
            f"Nothing that limits training was seen up to {where.removeprefix('at ')}, {only}.",
            _model(growth),
            [f"Measure larger ones, such as `--batch-sizes {2 * batch_size},{4 * batch_size}`."],
        )
    if compute_s is None:
        return f"What limits training {where} is not known: a step was not taken apart.", _model(growth), []
    return (
        f"What limits training {where} is not known: its times vary too much.",
        _rates(parts),
        ["Measure again (--again) while the machine does nothing else, or for longer (--seconds)."],
    )


def _rates(parts: StepParts) -> str:
    """Return the three rates in one sentence; they are there where input and computation were timed."""
    row = parts.row
    return (
        f"Per step the pipeline alone takes {_about(row.input_time_s)}, the computation alone "
        f"{_about(row.compute_time_s)}, both together {_about(parts.time_s)}."
    )


def _model(growth: Growth) -> str:
    model = growth.time_model
    if model is None:
        return "Too few batch sizes ran to tell the fixed part of a step from the part that grows."
    each = duration(model.per_example_s)
    return f"A step takes about {duration(model.fixed_s)}, and {each} more for each example."


def _about(interval: Interval | None) -> str:
    return duration(interval.estimate) if interval else "an unknown time"


def pipeline_sentences(diagnosis: InputDiagnosis | None) -> Iterator[str]:
    """Yield what was found in an input pipeline: where its time goes, what helps most, what was not tried."""
    if diagnosis is None:
        return
    slow = _slow_stages(diagnosis)
    if slow:
        yield f"Its time goes to {slow}."
    helpful = [remedy for remedy in diagnosis.remedies if _is_worthwhile(remedy)]
    for remedy in sorted(helpful, key=lambda remedy: remedy.step_after_s):
        yield _tried(remedy)
    useless = [
        f"{remedy.name} ({number(remedy.speedup)} × as fast)"
        for remedy in diagnosis.remedies
        if remedy not in helpful
    ]
    if useless:
        yield f"Tried without a clear gain: {', '.join(useless)}."
    yield from diagnosis.notes


def _is_worthwhile(remedy: Remedy) -> bool:
    is_sure = remedy.speedup_low is None or remedy.speedup_low > 1.0
    return remedy.speedup >= WORTHWHILE and is_sure


def _slow_stages(diagnosis: InputDiagnosis) -> str:
    total = sum(stage.time_per_example_s for stage in diagnosis.stages)
    slow = [stage for stage in diagnosis.stages if stage.time_per_example_s >= MINOR_STAGE * total > 0]
    slow.sort(key=lambda stage: stage.time_per_example_s, reverse=True)
    return ", ".join(f"{stage.name} ({percent(stage.time_per_example_s / total)})" for stage in slow)


def _tried(remedy: Remedy) -> str:
    gain = f"{duration(remedy.step_before_s)} → {duration(remedy.step_after_s)} per step"
    return f"{remedy.how} Measured: {number(remedy.speedup)} × as fast ({gain}). {remedy.caveat}".strip()
