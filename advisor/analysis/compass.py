"""Directed search for the hyperparameters that need the fewest steps: bracket, then refine.

A compass search (Kolda, Lewis and Torczon 2003, doi 10.1137/S003614450242889) on a grid of powers of two
around a starting point. It proposes from the trials so far alone, so a search that is repeated over
recorded trials takes the same way again.
"""

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from advisor.records.search_space import Float, Scale

Offsets = tuple[float, ...]

PROGRESS_ABOVE = math.sqrt(2)
"""Above so many times the progress of the best trials elsewhere, a learning rate is too large."""


class Rank(IntEnum):
    """Kinds of results, the better first."""

    REACHED = 0
    TOO_SLOW = 1
    INFEASIBLE = 2


LEFT_OPEN = {Rank.REACHED: 0.5, Rank.TOO_SLOW: 0.1, Rank.INFEASIBLE: 0.4}
"""How much a finer search may still gain, as a share of the finest stride, beside an upper neighbour of that
rank: half of it is expected. (On the noisy quadratic model, at a stride of a factor √2, the selected rates
need 6 %, 2 % and 4 % more steps than the best ones on the mean, and 16 % beside one that reached the target
at a large batch size.)"""


@dataclass(frozen=True, order=True)
class Score:
    """How good a trial was, smaller is better.

    ``value`` is steps to target, or what was still missing of it; of trials that diverged, the learning
    rate, so that the search goes down until one does not. ``tie`` decides between equal ones: the
    training loss, which still tells where a metric such as accuracy stands still. ``steps`` is how many the
    trial took, to the target or in all.
    """

    rank: Rank
    value: float
    tie: float = 0.0
    steps: float = field(default=0.0, compare=False)


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

    ``usual_progress`` is steps × effective learning rate to expect of the best trial, from those at other
    batch sizes; None where there are none. It is a constant below the best learning rate and more than that
    above it, so that it tells on which side of a trial the better one lies.
    """

    axes: tuple[Axis, ...]
    strides: tuple[float, ...]
    usual_progress: float | None = None

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

    def moved(self, offsets: Offsets) -> "Compass":
        """Return the same search with its starting point at ``offsets``."""
        values = self.values(offsets)
        return replace(self, axes=tuple(replace(axis, start=values[axis.name]) for axis in self.axes))

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

        A side that was not tried counts with the whole of its gap (at most the widest stride), since steps
        may fall in proportion to the learning rate. So they may within the finest stride, up to a cliff:
        that counts with a share of the stride, by what became of the upper neighbour (:data:`LEFT_OPEN`).
        """
        if scores[point].rank is not Rank.REACHED:
            return 0.0
        return sum(self._axis_slack(point, axis, scores) for axis in range(len(self.axes)))

    def _axis_slack(self, point: Offsets, axis: int, scores: Mapping[Offsets, Score]) -> float:
        sides = [self._side(point, axis, sign, scores) for sign in (-1, 1)]
        gaps = [min(side.gap, self.strides[0]) for side in sides if side.next_point]
        if gaps:
            return max(gaps) * math.log(2)
        upper = scores.get(_moved(point, axis, self.strides[-1]))
        return LEFT_OPEN[upper.rank if upper else Rank.TOO_SLOW] * self.strides[-1] * math.log(2)

    def _sides(self, best: Offsets, scores: Mapping[Offsets, Score]) -> Sequence["_Side"]:
        is_above, diverged = self._is_above(best, scores[best]), scores[best].rank is Rank.INFEASIBLE
        return [
            self._side(best, axis, sign, scores)
            for axis in range(len(self.axes))
            for sign in ((-1, 1) if diverged or (is_above and axis == 0) else (1, -1))
        ]

    def _is_above(self, point: Offsets, score: Score) -> bool:
        """Return whether the best learning rate, the first axis, is rather below that at ``point``."""
        if self.usual_progress is None or not point or self.axes[0].name != "learning_rate":
            return False
        return progress(self.values(point), score.steps) > PROGRESS_ABOVE * self.usual_progress

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


def progress(values: Mapping[str, object], steps: float) -> float:
    """Return ``steps`` × effective learning rate; 0 where no learning rate is among ``values``."""
    rate, momentum = values.get("learning_rate", 0.0), values.get("momentum", 0.0)
    assert isinstance(rate, float) and isinstance(momentum, float)
    return steps * rate / (1 - momentum)


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

    ``optima`` maps batch sizes to the best learning rates found so far. Without any, ``default`` is taken to
    hold at ``default_batch_size``, and to follow ``exponent``, the power of the theory for perfect scaling.
    Otherwise the nearest optimum is scaled. The power falls from ``exponent`` to 0 as the batch size grows:
    between two optima it is what they show, and beyond them the middle of what it may still be.
    """
    if not optima:
        return default * math.pow(batch_size / default_batch_size, exponent)
    nearest = min(optima, key=lambda other: abs(math.log(other / batch_size)))
    return optima[nearest] * math.pow(batch_size / nearest, _power(optima, batch_size, exponent))


def _power(optima: Mapping[int, float], batch_size: int, exponent: float) -> float:
    sizes = sorted(optima)
    if len(sizes) == 1:
        return exponent / 2
    place = min(max(bisect(sizes, batch_size), 1), len(sizes) - 1)
    low, high = sizes[place - 1], sizes[place]
    shown = min(max(math.log(optima[high] / optima[low]) / math.log(high / low), 0.0), exponent)
    if batch_size > high:
        return shown / 2
    return (shown + exponent) / 2 if batch_size < low else shown


def _moved(offsets: Offsets, axis: int, by: float) -> Offsets:
    return (*offsets[:axis], offsets[axis] + by, *offsets[axis + 1 :])
