"""Which trial is so far behind the best one that it need not run on."""

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.analysis.curves import metric_values
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

LAG = 1.5
"""A trial is behind where the best one was clearly further at so many times fewer steps."""
LAG_ELSEWHERE = 2.0
"""The same beside the best trial of another batch size, which sets less exact a pace."""
LEAST_SHARE = 0.25
"""None is stopped before this share of the best one's steps: small learning rates start slowly."""


def is_dominated(
    curve: Sequence[CurvePoint],
    best: Sequence[CurvePoint],
    steps_of_best: float,
    target: Target,
    lag: float = LAG,
) -> bool:
    """Return whether ``curve`` is far behind ``best``, which reached ``target`` in ``steps_of_best`` steps.

    It is where its own best evaluation so far is worse than every evaluation of ``best`` between the same
    step and that step divided by ``lag``. (How seldom this stops the better one of two is simulated in the
    tests.)
    """
    step = curve[-1].step
    if step < LEAST_SHARE * steps_of_best:
        return False
    since = [point for point in best if step / lag <= point.step <= step]
    if not since:
        return False
    own, ahead = metric_values(curve, target), metric_values(since, target)
    return target.better(_worst(ahead, target), _best(own, target))


def slowed(curve: Sequence[CurvePoint], factor: float) -> Sequence[CurvePoint]:
    """Return ``curve`` at a pace slower by ``factor``."""
    return [replace(point, step=math.ceil(point.step * factor)) for point in curve]


def _best(values: Sequence[float], target: Target) -> float:
    return max(values) if target.maximize else min(values)


def _worst(values: Sequence[float], target: Target) -> float:
    return min(values) if target.maximize else max(values)
