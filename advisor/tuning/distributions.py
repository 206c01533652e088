"""A hyperparameter as the advisor gives it, and as Optuna keeps it.

One that is searched on the logarithm of 1 − value is kept as ``one_minus_NAME`` on a logarithmic scale, for
which Optuna has no other way.
"""

import math

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from advisor.records.search_space import Categorical, Distribution, Float, HyperparameterValue, Int

_ROUNDING = 1e-9  # relative; by so much a value may lie outside of its range


def kept_name(name: str, distribution: Distribution) -> str:
    """Return the name under which Optuna keeps a hyperparameter."""
    return f"one_minus_{name}" if _is_one_minus(distribution) else name


def kept_distribution(distribution: Distribution) -> BaseDistribution:
    """Return Optuna's form of ``distribution``."""
    match distribution:
        case Float(low=low, high=high, log_one_minus=True):
            return FloatDistribution(1 - high, 1 - low, log=True)
        case Float(low=low, high=high, log=log):
            return FloatDistribution(low, high, log=log)
        case Int(low=low, high=high, log=log):
            return IntDistribution(low, high, log=log)
        case Categorical(choices=choices):
            return CategoricalDistribution(choices)


def kept_value(distribution: Distribution, value: HyperparameterValue) -> HyperparameterValue:
    """Return ``value`` as Optuna keeps it."""
    if not isinstance(distribution, Float):
        return value
    inside = _clipped(distribution, value)
    return 1 - inside if distribution.log_one_minus else inside


def given_value(distribution: Distribution, kept: HyperparameterValue) -> HyperparameterValue:
    """Return a kept value as the advisor gives it."""
    if isinstance(distribution, Float) and distribution.log_one_minus:
        return _clipped(distribution, 1 - float(kept))
    return kept


def holds(distribution: Distribution, value: HyperparameterValue) -> bool:
    """Return whether ``value`` is one that ``distribution`` can give."""
    if isinstance(distribution, Categorical):
        return any(value == choice and type(value) is type(choice) for choice in distribution.choices)
    if isinstance(value, bool | str):
        return False
    if isinstance(distribution, Int):
        return float(value).is_integer() and distribution.low <= value <= distribution.high
    return math.isclose(value, _clipped(distribution, value), rel_tol=_ROUNDING)


def described(distribution: Distribution) -> str:
    """Return what is searched, so that two are equal in words exactly if they are equal."""
    if isinstance(distribution, Categorical):
        return "one of " + ", ".join(map(repr, distribution.choices))
    if isinstance(distribution, Int):
        scale = " (logarithmic)" if distribution.log else ""
        return f"whole numbers from {distribution.low} to {distribution.high}{scale}"
    return f"{float(distribution.low)!r} to {float(distribution.high)!r} ({distribution.scale.value})"


def _clipped(distribution: Float, value: HyperparameterValue) -> float:
    return min(max(float(value), distribution.low), distribution.high)


def _is_one_minus(distribution: Distribution) -> bool:
    return isinstance(distribution, Float) and distribution.log_one_minus
