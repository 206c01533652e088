"""From a training curve to steps to target, and which of its checkpoints is best."""

import math
from collections.abc import Iterator, Sequence

from advisor.records.scaling import Crossing
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

DIVERGENCE_FACTOR = 10.0
"""A training loss so many times its start above it has diverged."""


def evaluation_steps(maximum: int, ratio: float) -> Iterator[int]:
    """Yield the steps to evaluate at: from 1 to ``maximum``, each ``ratio`` times the last.

    Whole steps that are at least 1 apart; ``maximum`` is always the last. On this grid every batch size
    has equal chances to meet the target per factor of progress.
    """
    step = 1
    while step < maximum:
        yield step
        step = max(step + 1, int(step * ratio))
    yield maximum


def crossing(points: Sequence[CurvePoint], target: Target) -> Crossing:
    """Return when the curve first met ``target``; ``points`` are in the order of their steps.

    Between the last evaluation that failed and the first that passed, the metric is taken as linear in the
    step. Interpolating in the logarithm of the step would differ by an eighth of the squared logarithm of
    their ratio (0.03 % for a grid of 5 %), and the logarithm has no step 0. Where there is no finite
    value to interpolate from, the geometric middle of the steps that it may be stands in. A value that is
    not finite never passes.
    """
    low, before = 0, math.nan
    for point in points:
        value = point.metrics.get(target.metric, math.nan)
        if math.isfinite(value) and target.reached(value):
            return Crossing(_interpolated(low, before, point.step, value, target), low, point.step)
        low, before = point.step, value
    return Crossing(None, low, None)


def best_point(points: Sequence[CurvePoint], target: Target) -> CurvePoint | None:
    """Return the point with the best finite value of the target's metric, the earliest of equals.

    Choosing afterwards replaces early stopping. None where no evaluation was finite.
    """
    best: CurvePoint | None = None
    for point in points:
        value = point.metrics.get(target.metric, math.nan)
        if math.isfinite(value) and (best is None or target.better(value, best.metrics[target.metric])):
            best = point
    return best


def diverged(points: Sequence[CurvePoint]) -> bool:
    """Return whether the training loss is not finite, or stays far above its start.

    Far above means by ``DIVERGENCE_FACTOR`` times the size of the first loss, at the last two points: a
    large learning rate may overshoot once and recover. A validation loss that is no worse than at the
    first evaluation speaks against it: the first examples may only have been easy.
    """
    losses = [point.training_loss for point in points if point.training_loss is not None]
    if not all(math.isfinite(loss) for loss in losses):
        return True
    if len(losses) < 3 or losses[0] == 0 or _validates(points):
        return False
    limit = losses[0] + DIVERGENCE_FACTOR * abs(losses[0])
    return min(losses[-2:]) > limit


def _validates(points: Sequence[CurvePoint]) -> bool:
    losses = [point.metrics["loss"] for point in points if "loss" in point.metrics]
    return len(losses) > 1 and losses[-1] <= losses[0]


def _interpolated(low: int, before: float, high: int, value: float, target: Target) -> float:
    if high == 0:
        return 0.0
    if not math.isfinite(before):
        return math.sqrt((low + 1) * high)
    share = (target.value - before) / (value - before)
    return low + share * (high - low)
