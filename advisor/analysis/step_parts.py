"""What a training step is made of, as shares of its time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from advisor.analysis.statistics import product
from advisor.records.bottleneck import BottleneckKind, InputDiagnosis
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, TimeModel

Shares = Mapping[BottleneckKind, Interval]

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

    Input: 1 − computation alone over the whole step. Computation is the same ratio, at most 1. Dispatch:
    the part of the time model that does not grow with the batch size, where the model fits to a residual
    of ``GOOD_FIT``. Synchronization: 1 − the mean of the workers alone over their computation together.
    """
    return dict(_shares(parts, time_model))


def _shares(parts: StepParts, time_model: TimeModel | None) -> Iterator[tuple[BottleneckKind, Interval]]:
    compute_s = parts.row.compute_time_s
    if compute_s is not None:
        busy = product(compute_s, parts.time_s.inverse())
        yield BottleneckKind.COMPUTE, _between_0_and_1(busy)
        yield BottleneckKind.INPUT, _rest_of(busy)
    if parts.host_s is not None:
        yield BottleneckKind.HOST, _between_0_and_1(parts.time_s.inverse(parts.host_s))
    if len(parts.workers_s) > 1:
        together_s = compute_s or parts.time_s
        alone_s = sum(parts.workers_s) / len(parts.workers_s)
        yield BottleneckKind.SYNCHRONIZATION, _rest_of(together_s.inverse(alone_s))
    if time_model is not None and time_model.residual_log_rms <= GOOD_FIT:
        yield BottleneckKind.DISPATCH, _between_0_and_1(parts.time_s.inverse(time_model.fixed_s))


def _rest_of(ratio: Interval) -> Interval:
    low, high = _clipped(1 - ratio.high), _clipped(1 - ratio.low)
    return Interval(_clipped(1 - ratio.estimate), low, high, ratio.level)


def _between_0_and_1(ratio: Interval) -> Interval:
    return Interval(_clipped(ratio.estimate), _clipped(ratio.low), _clipped(ratio.high), ratio.level)


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
