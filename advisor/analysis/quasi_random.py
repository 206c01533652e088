"""Points that fill a search space evenly, one at a time."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from scipy.stats import qmc

from advisor.records.search_space import (
    Categorical,
    Distribution,
    Float,
    HyperparameterValue,
    Int,
    Scale,
    SearchSpace,
    default_value,
)

Number = TypeVar("Number", int, float)


def quasi_random_point(space: SearchSpace, index: int, seed: int) -> dict[str, HyperparameterValue]:
    """Return the point number ``index`` of the scrambled Sobol sequence over ``space``.

    Any part of the sequence can be had without the rest, so that a study that is taken up again goes on
    where it was.
    """
    if not space:
        return {}
    engine = qmc.Sobol(len(space), scramble=True, rng=seed)
    if index:
        engine.fast_forward(index)
    shares = engine.random(1)[0]
    return {name: _value(space[name], float(share)) for name, share in zip(space, shares, strict=True)}


def window(
    space: SearchSpace, centre: Mapping[str, HyperparameterValue], decades: float = 1.0
) -> dict[str, Distribution]:
    """Return ``space`` with its learning rate held to ``decades`` on each side of ``centre``, where known."""
    narrowed = dict(space)
    learning_rate = space.get("learning_rate")
    if isinstance(learning_rate, Float) and "learning_rate" in centre:
        middle, factor = float(centre["learning_rate"]), 10**decades
        low, high = max(learning_rate.low, middle / factor), min(learning_rate.high, middle * factor)
        if low < high:
            narrowed["learning_rate"] = replace(learning_rate, low=low, high=high)
    return narrowed


def usual_value(distribution: Distribution, held: float | None) -> HyperparameterValue:
    """Return what holds where nothing is tuned, moved into the range that is searched.

    ``held`` is the optimizer's own default of the hyperparameter, None where it is not the optimizer's.
    """
    value = default_value(distribution) if held is None else held
    if isinstance(distribution, Categorical):
        # The choice itself, since 0.0 and 0 are equal, and only one of them is searched.
        return next((choice for choice in distribution.choices if choice == value), distribution.choices[0])
    if isinstance(distribution, Int):
        return _clipped(round(float(value)), distribution.low, distribution.high)
    return _clipped(float(value), float(distribution.low), float(distribution.high))


def number_of_points(space: SearchSpace) -> float:
    """Return how many different points ``space`` holds; infinite where one of its axes is continuous."""
    return math.prod(_number_of_values(distribution) for distribution in space.values())


def _number_of_values(distribution: Distribution) -> float:
    if isinstance(distribution, Categorical):
        return len(set(distribution.choices))
    return distribution.high - distribution.low + 1 if isinstance(distribution, Int) else math.inf


def _value(distribution: Distribution, share: float) -> HyperparameterValue:
    if isinstance(distribution, Categorical):
        return distribution.choices[int(share * len(distribution.choices))]
    if isinstance(distribution, Int):
        return _whole(distribution, share)
    low, high = float(distribution.low), float(distribution.high)
    if distribution.scale is Scale.LOG_ONE_MINUS:
        value = 1 - _between(1 - low, 1 - high, share, log=True)
    else:
        value = _between(low, high, share, distribution.log)
    return _clipped(value, low, high)


def _whole(distribution: Int, share: float) -> int:
    """Every whole number gets the width of its own unit of the axis."""
    low, high = distribution.low, distribution.high
    return _clipped(math.floor(_between(low, high + 1, share, distribution.log)), low, high)


def _between(low: float, high: float, share: float, log: bool) -> float:
    if log:
        return math.exp((1 - share) * math.log(low) + share * math.log(high))
    return low + (high - low) * share


def _clipped(value: Number, low: Number, high: Number) -> Number:
    """Return ``value`` moved into its range, out of which rounding may have pushed it."""
    return min(max(value, low), high)
