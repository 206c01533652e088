"""Directed search for the hyperparameters that need the fewest steps: bracket, then refine.

A compass search (Kolda, Lewis and Torczon 2003, doi 10.1137/S003614450242889) on a grid of powers of two
around a starting point. It proposes from the trials so far alone, so a search that is repeated over
recorded trials takes the same way again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from advisor.records.search_space import Float, Scale

Offsets = tuple[float, ...]


class Rank(IntEnum):
    """Kinds of results, the better first."""

    REACHED = 0
    TOO_SLOW = 1
    INFEASIBLE = 2


@dataclass(frozen=True, order=True)
class Score:
    """How good a trial was, smaller is better.

    ``value`` is steps to target, or what was still missing of it; of trials that diverged, the learning
    rate, so that the search goes down until one does not. ``tie`` decides between equal ones: the
    training loss, which still tells where a metric such as accuracy stands still.
    """

    rank: Rank
    value: float
    tie: float = 0.0


@dataclass(frozen=True)
class Axis:
    """One hyperparameter: its range, and where the search starts."""

    name: str
    range: Float
    start: float

    def at(self, offset: float) -> float:
        """Return the value ``offset`` doublings from the start (of 1 − value on that scale)."""
        if self.range.scale is Scale.LOG_ONE_MINUS:
            return 1 - (1 - self.start) * math.exp2(-offset)
        return self.start * math.exp2(offset)

    def contains(self, value: float) -> bool:
        """Return whether the range holds ``value``."""
        return self.range.low * (1 - 1e-9) <= value <= self.range.high * (1 + 1e-9)


@dataclass(frozen=True)
class Compass:
    """A search over ``axes`` with ever smaller ``strides`` (in doublings), the learning rate first.

    Where momentum is searched, the learning rate is scaled to keep learning rate / (1 − momentum), the
    effective learning rate, so that the two axes are nearly independent.
    """

    axes: tuple[Axis, ...]
    strides: tuple[float, ...]

    @property
    def origin(self) -> Offsets:
        """The starting point."""
        return (0.0,) * len(self.axes)

    def values(self, offsets: Offsets) -> dict[str, float]:
        """Return the hyperparameters at ``offsets``."""
        values = {axis.name: axis.at(offset) for axis, offset in zip(self.axes, offsets, strict=True)}
        if "momentum" in values and "learning_rate" in values:
            start = next(axis.start for axis in self.axes if axis.name == "momentum")
            values["learning_rate"] *= (1 - values["momentum"]) / (1 - start)
        return values

    def inside(self, offsets: Offsets) -> bool:
        """Return whether all hyperparameters at ``offsets`` lie in their ranges."""
        values = self.values(offsets)
        return all(axis.contains(values[axis.name]) for axis in self.axes)

    def propose(self, scores: Mapping[Offsets, Score]) -> Offsets | None:
        """Return the next point to try, or None where the best one is bracketed at the finest stride.

        The widest open side of the best point is narrowed first.
        """
        if not scores:
            return self.origin
        best = best_offsets(scores)
        sides = sorted(self._sides(best, scores), key=lambda side: -side.gap)
        return next((side.next_point for side in sides if side.next_point), None)

    def at_edge(self, point: Offsets) -> bool:
        """Return whether a neighbour of ``point`` lies outside its range, so that it could not be tried."""
        axes, finest = range(len(self.axes)), self.strides[-1]
        return any(not self.inside(_moved(point, axis, by)) for axis in axes for by in (finest, -finest))

    def log_slack(self, point: Offsets, scores: Mapping[Offsets, Score]) -> float:
        """Return how much lower ln(steps) may be near ``point`` than at it: what the search left open.

        Along each axis the vertex of the parabola through the point and its neighbours at the finest
        stride. A neighbour that was stopped for being slower counts as the point itself, one that diverged
        as twice its steps. A side that was not tried counts with the whole of its gap (at most the widest
        stride), since steps may fall in proportion to the learning rate.
        """
        if scores[point].rank is not Rank.REACHED:
            return 0.0
        return sum(self._axis_slack(point, axis, scores) for axis in range(len(self.axes)))

    def _axis_slack(self, point: Offsets, axis: int, scores: Mapping[Offsets, Score]) -> float:
        sides = [self._side(point, axis, sign, scores) for sign in (-1, 1)]
        gaps = [min(side.gap, self.strides[0]) for side in sides if side.next_point]
        if gaps:
            return max(gaps) * math.log(2)
        middle = math.log(scores[point].value)
        neighbours = (scores.get(_moved(point, axis, sign * self.strides[-1])) for sign in (-1, 1))
        below, above = (_log_steps(score, middle) for score in neighbours)
        curvature = below - 2 * middle + above
        return (above - below) ** 2 / (8 * curvature) if curvature > 0 else 0.0

    def _sides(self, best: Offsets, scores: Mapping[Offsets, Score]) -> Sequence["_Side"]:
        signs = (-1, 1) if scores[best].rank is Rank.INFEASIBLE else (1, -1)
        return [self._side(best, axis, sign, scores) for axis in range(len(self.axes)) for sign in signs]

    def _side(self, best: Offsets, axis: int, sign: int, scores: Mapping[Offsets, Score]) -> "_Side":
        beyond = [point for point in scores if (point[axis] - best[axis]) * sign > 0]
        on_line = [point for point in beyond if _moved(point, axis, best[axis] - point[axis]) == best]
        gap = min((abs(point[axis] - best[axis]) for point in on_line), default=math.inf)
        finest = self.strides[-1]
        widest = finest if beyond and not on_line else self.strides[0]
        points = [
            _moved(best, axis, sign * stride)
            for stride in self.strides
            if finest < gap and stride < gap and stride <= widest
        ]
        return _Side(gap, next((point for point in points if self.inside(point)), None))


@dataclass(frozen=True)
class _Side:
    """One direction from the best point: how far the nearest trial is, and what to try next, if anything."""

    gap: float
    next_point: Offsets | None


def best_offsets(scores: Mapping[Offsets, Score]) -> Offsets:
    """Return the point with the best score, the first of equal ones."""
    return min(scores, key=lambda offsets: scores[offsets])


def start_learning_rate(
    optima: Mapping[int, float],
    batch_size: int,
    exponent: float,
    default: float,
    default_batch_size: int = 32,
) -> float:
    """Return where to start the search at ``batch_size``.

    ``optima`` maps batch sizes to the best learning rates found so far. The nearest is scaled with the
    power that its two nearest neighbours show, held between 0 (no change) and ``exponent``, the theory's
    for perfect scaling; without any, ``default`` is taken to hold at ``default_batch_size``.
    """
    if not optima:
        return default * math.pow(batch_size / default_batch_size, exponent)
    nearest = sorted(optima, key=lambda other: abs(math.log(other / batch_size)))
    power = exponent
    if len(nearest) > 1:
        first, second = nearest[:2]
        power = math.log(optima[first] / optima[second]) / math.log(first / second)
    return optima[nearest[0]] * math.pow(batch_size / nearest[0], min(max(power, 0.0), exponent))


def _moved(offsets: Offsets, axis: int, by: float) -> Offsets:
    return (*offsets[:axis], offsets[axis] + by, *offsets[axis + 1 :])


def _log_steps(score: Score | None, middle: float) -> float:
    if score is None or score.rank is Rank.INFEASIBLE:
        return middle + math.log(2)
    return math.log(score.value) if score.rank is Rank.REACHED else middle
