"""What a training step is made of, as shares of its time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from advisor.analysis.statistics import product
from advisor.records.bottleneck import BottleneckKind, InputDiagnosis
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, TimeModel

Shares = Mapping[BottleneckKind, Interval]

INPUT_OVER_COMPUTE = 1.1
"""A pipeline that alone takes this many times as long as the computation alone limits the step."""
LEAST_STALL = 0.05
"""A smaller part of a step spent waiting for data is not worth a change."""
LARGE_STALL = 0.25
"""So large a part is worth one also where the pipeline is the quicker: both want the same processors."""
IMPOSSIBLE = 1.25
"""A part that alone takes this many times as long as the whole step was not timed on the same machine."""
GOOD_FIT = 0.2
"""A time model that is off by more (root mean square of the logarithm) tells no fixed part."""


@dataclass(frozen=True)
class StepParts:
    """One batch size that ran, with what was timed of it besides (s per step).

    ``time_s`` is of whole steps, timed as close to their parts as can be. ``host_s`` was spent in Python
    functions that a step calls; ``workers_s`` are the times of each worker's computation without the
    others, empty for a single worker.
    """

    row: BatchThroughput
    time_s: Interval
    host_s: float | None = None
    workers_s: tuple[float, ...] = ()
    diagnosis: InputDiagnosis | None = None


def shares_of(parts: StepParts, time_model: TimeModel | None) -> Shares:
    """Return the share of a step that each part takes, where it is known; shares overlap.

    Input: 1 − computation alone over the whole step, at most the pipeline alone over it: no step waits
    longer. Computation is that ratio, at most 1. Dispatch:
    the part of the time model that does not grow with the batch size, where the model fits to a residual
    of ``GOOD_FIT``. Synchronization: 1 − the mean of the workers alone over their computation together.
    """
    return dict(_shares(parts, time_model))


def is_input_bound(parts: StepParts) -> bool:
    """Return whether the input pipeline limits the step; False where its parts were not timed."""
    if contradict(parts) or not _seems_input_bound(parts):
        return False
    return shares_of(parts, None)[BottleneckKind.INPUT].low > 0


def are_uncertain(parts: StepParts) -> bool:
    """Return whether the parts of a step neither blame its input pipeline nor clear it."""
    return contradict(parts) or (_seems_input_bound(parts) and not is_input_bound(parts))


def contradict(parts: StepParts) -> bool:
    """Return whether a part alone took far longer than the whole step, beyond their intervals."""
    alone = (parts.row.input_time_s, parts.row.compute_time_s)
    return any(part is not None and part.low > IMPOSSIBLE * parts.time_s.high for part in alone)


def _seems_input_bound(parts: StepParts) -> bool:
    """Return whether the estimates say so, however uncertain they are."""
    input_s, compute_s = parts.row.input_time_s, parts.row.compute_time_s
    if input_s is None or compute_s is None:
        return False
    stall = shares_of(parts, None)[BottleneckKind.INPUT].estimate
    is_slower = input_s.estimate > INPUT_OVER_COMPUTE * compute_s.estimate
    return stall >= (LEAST_STALL if is_slower else LARGE_STALL)


def _shares(parts: StepParts, time_model: TimeModel | None) -> Iterator[tuple[BottleneckKind, Interval]]:
    compute_s = parts.row.compute_time_s
    if compute_s is not None:
        busy = product(compute_s, parts.time_s.inverse())
        yield BottleneckKind.COMPUTE, _between_0_and_1(busy)
        yield BottleneckKind.INPUT, _stall(parts, busy)
    if parts.host_s is not None:
        yield BottleneckKind.HOST, _between_0_and_1(parts.time_s.inverse(parts.host_s))
    if len(parts.workers_s) > 1:
        together_s = compute_s or parts.time_s
        alone_s = sum(parts.workers_s) / len(parts.workers_s)
        yield BottleneckKind.SYNCHRONIZATION, _rest_of(together_s.inverse(alone_s))
    if time_model is not None and time_model.residual_log_rms <= GOOD_FIT:
        yield BottleneckKind.DISPATCH, _between_0_and_1(parts.time_s.inverse(time_model.fixed_s))


def _stall(parts: StepParts, busy: Interval) -> Interval:
    idle, input_s = _rest_of(busy), parts.row.input_time_s
    if input_s is None:
        return idle
    most = _between_0_and_1(product(input_s, parts.time_s.inverse()))
    return Interval(
        min(idle.estimate, most.estimate), min(idle.low, most.low), min(idle.high, most.high), idle.level
    )


def _rest_of(ratio: Interval) -> Interval:
    low, high = _clipped(1 - ratio.high), _clipped(1 - ratio.low)
    return Interval(_clipped(1 - ratio.estimate), low, high, ratio.level)


def _between_0_and_1(ratio: Interval) -> Interval:
    return Interval(_clipped(ratio.estimate), _clipped(ratio.low), _clipped(ratio.high), ratio.level)


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
