"""From curves of several fresh seeds to a target that all of them reach well before their end."""

import math
from collections.abc import Sequence
from statistics import median

from advisor.analysis.curves import crossing, metric_values
from advisor.analysis.statistics import SPREAD_PER_MAD
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

LATE_SHARE = 2 / 3
"""Where on the training the value is taken from: late enough to ask for something, with room behind it."""
LATE_POINTS = 5
"""The value is the median of so many evaluations up to there, so that a lucky one does not count."""
REACHED_SHARE = 0.8
"""By then every seed has to have reached the rounded target."""
MOST_DIGITS = 4

MARGIN = 3.0
"""A target that the untrained model misses by less than so many standard deviations might be met by it."""

Curve = Sequence[CurvePoint]


def late_value(curve: Curve, objective: Target) -> float:
    """Return the median of the last evaluations in the first two thirds of the training."""
    end = LATE_SHARE * curve[-1].step
    before = [point for point in curve if point.step <= end] or curve[:1]
    return median(metric_values(before[-LATE_POINTS:], objective))


def proposed_target(curves: Sequence[Curve], objective: Target) -> Target | None:
    """Return a target that every curve reaches in time and the bound of ``objective`` does not meet.

    The worst late value, rounded to the stricter side to the fewest significant digits with which every
    curve still reaches it within :data:`REACHED_SHARE` of its steps; where there are none, rounded to the
    nearest number of :data:`MOST_DIGITS` digits on the easier side. None where that is not better than the
    bound of ``objective``, which is what the untrained model has, by :data:`MARGIN` times what evaluations
    stray.
    """
    late = [late_value(curve, objective) for curve in curves]
    worst = (min if objective.maximize else max)(late)
    if not math.isfinite(worst):
        return None
    stricter = (rounded(worst, digits, up=objective.maximize) for digits in range(1, MOST_DIGITS + 1))
    easier = rounded(worst, MOST_DIGITS, up=not objective.maximize)
    values = (value for value in (*stricter, easier) if _reached_in_time(curves, _at(objective, value)))
    target = next((_at(objective, value) for value in values), None)
    margin = MARGIN * max(evaluation_noise(curve, objective) for curve in curves)
    bound = objective.value + (margin if objective.maximize else -margin)
    return target if target and objective.better(target.value, bound) else None


def evaluation_noise(curve: Curve, objective: Target) -> float:
    """Return by how much an evaluation strays from a smooth curve (standard deviation), robustly.

    From second differences, which a steady progress does not move; those of independent values have 6 times
    their variance. 0 where there are fewer than three evaluations.
    """
    values = metric_values(curve, objective)
    triples = zip(values, values[1:], values[2:], strict=False)
    seconds = [abs(before - 2 * value + after) for before, value, after in triples]
    finite = [second for second in seconds if math.isfinite(second)]
    return SPREAD_PER_MAD * median(finite) / math.sqrt(6) if finite else 0.0


def rounded(value: float, digits: int, up: bool) -> float:
    """Return ``value`` with so many significant digits, rounded up or down."""
    if value == 0:
        return 0.0
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    whole = (math.ceil if up else math.floor)(round(value * 10.0**decimals, 9))
    return round(whole / 10.0**decimals, max(decimals, 0))


def _at(objective: Target, value: float) -> Target:
    if objective.maximize:
        return Target(objective.metric, at_least=value)
    return Target(objective.metric, at_most=value)


def _reached_in_time(curves: Sequence[Curve], target: Target) -> bool:
    found = [(crossing(curve, target).steps, curve[-1].step) for curve in curves]
    return all(steps is not None and steps <= REACHED_SHARE * last for steps, last in found)
