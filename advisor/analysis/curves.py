"""From a training curve to steps to target, and which of its checkpoints is best."""

import math
from collections.abc import Iterable, Iterator, Sequence

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
    """Return when the curve met ``target``; ``points`` are in the order of their steps.

    It is met where the median of an evaluation and its two neighbours meets it, so that one lucky evaluation
    never counts. On a curve without noise that is the first evaluation to pass. A neighbour that is missing
    or not finite counts as one that fails: the last evaluation needs the one before it to pass too.

    Between the last median that failed and the first that passed, the metric is taken as linear in the
    step. Interpolating in the logarithm of the step would differ by an eighth of the squared logarithm of
    their ratio (0.03 % for a grid of 5 %), and the logarithm has no step 0. Where there is no finite
    value to interpolate from, the geometric middle of the steps that it may be stands in.
    """
    low, before = 0, math.nan
    for point, value in zip(points, _medians_of_three(points, target), strict=True):
        if target.reached(value):
            return Crossing(_interpolated(low, before, point.step, value, target), low, point.step)
        low, before = point.step, value
    return Crossing(None, low, None)


def metric_values(points: Iterable[CurvePoint], target: Target) -> Sequence[float]:
    """Return the target's metric at each point; what is missing or not finite is infinitely bad."""
    fails = _infinitely_bad(target)
    found = (point.metrics.get(target.metric, math.nan) for point in points)
    return [value if math.isfinite(value) else fails for value in found]


def _medians_of_three(points: Sequence[CurvePoint], target: Target) -> Iterator[float]:
    fails = _infinitely_bad(target)
    values = [fails, *metric_values(points, target), fails]
    return (sorted(values[place : place + 3])[1] for place in range(len(points)))


def _infinitely_bad(target: Target) -> float:
    return -math.inf if target.maximize else math.inf


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
    if not all(map(math.isfinite, losses)):
        return True
    if len(losses) < 3 or losses[0] == 0 or _validates(points):
        return False
    limit = losses[0] + DIVERGENCE_FACTOR * abs(losses[0])
    return min(losses[-2:]) > limit


def never_finite(points: Sequence[CurvePoint]) -> bool:
    """Return whether no evaluation had a finite loss: its weights are lost, whatever the training reports."""
    losses = [point.metrics["loss"] for point in points if "loss" in point.metrics]
    return bool(losses) and not any(map(math.isfinite, losses))


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
