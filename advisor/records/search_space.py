"""Distributions that a hyperparameter can be searched in, and their part in a question."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real

from advisor.errors import WorkloadError

HyperparameterValue = float | int | str | bool


class Role(StrEnum):
    """What a hyperparameter is for a given question."""

    SCIENTIFIC = "scientific"
    NUISANCE = "nuisance"
    FIXED = "fixed"


class Scale(StrEnum):
    """On which axis equal distances matter equally."""

    LINEAR = "linear"
    LOG = "log"
    LOG_ONE_MINUS = "log_one_minus"


@dataclass(frozen=True)
class Float:
    """A real hyperparameter between ``low`` and ``high``.

    ``log=True`` searches its logarithm, ``log_one_minus=True`` the logarithm of 1 − value (for momentum
    and betas). ``default`` holds where it is not tuned.
    """

    low: float
    high: float
    default: float | None = None
    log: bool = False
    log_one_minus: bool = False

    def __post_init__(self) -> None:
        for field in ("low", "high", "default"):
            object.__setattr__(self, field, _real("Float", field, getattr(self, field)))
        if not self.low < self.high:
            raise WorkloadError(f"Float got low={self.low} and high={self.high}; low must be below high.")
        if self.log and self.low <= 0:
            raise WorkloadError(f"Float with log=True got low={self.low}; it must be above 0.")
        if self.log_one_minus and self.high >= 1:
            raise WorkloadError(f"Float with log_one_minus=True got high={self.high}; it must be below 1.")

    @property
    def scale(self) -> Scale:
        """The axis of the search."""
        if self.log_one_minus:
            return Scale.LOG_ONE_MINUS
        return Scale.LOG if self.log else Scale.LINEAR


@dataclass(frozen=True)
class Int:
    """A whole-numbered hyperparameter from ``low`` to ``high``, both included."""

    low: int
    high: int
    default: int | None = None
    log: bool = False

    def __post_init__(self) -> None:
        for field in ("low", "high", "default"):
            object.__setattr__(self, field, _whole("Int", field, getattr(self, field)))
        if not self.low <= self.high:
            raise WorkloadError(f"Int got low={self.low} and high={self.high}; low must not exceed high.")
        if self.log and self.low <= 0:
            raise WorkloadError(f"Int with log=True got low={self.low}; it must be above 0.")


@dataclass(frozen=True)
class Categorical:
    """A hyperparameter that takes one of ``choices``."""

    choices: tuple[HyperparameterValue, ...]
    default: HyperparameterValue | None = None

    def __init__(
        self,
        choices: tuple[HyperparameterValue, ...] | list[HyperparameterValue],
        default: HyperparameterValue | None = None,
    ) -> None:
        object.__setattr__(self, "choices", tuple(_plain(choice) for choice in choices))
        object.__setattr__(self, "default", None if default is None else _plain(default))
        if not self.choices:
            raise WorkloadError("Categorical got no choices; name at least one.")


def _real(kind: str, field: str, value: object) -> float | None:
    """Return a finite number as a plain float; numpy's are numbers too."""
    if value is None and field == "default":
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise WorkloadError(f"{kind} got {field}={value!r}; it must be a finite number.")
    return float(value)


def _whole(kind: str, field: str, value: object) -> int | None:
    number = _real(kind, field, value)
    if number is not None and number != int(number):
        raise WorkloadError(f"{kind} got {field}={value!r}; it must be a whole number.")
    return None if number is None else int(number)


def _plain(choice: object) -> HyperparameterValue:
    """Return a choice as what every part of the advisor can store: an exact str, bool, int or float."""
    if type(choice) in (str, bool, int, float):
        return choice  # type: ignore[return-value]
    if isinstance(choice, Integral):
        return int(choice)
    if isinstance(choice, Real):
        return float(choice)
    raise WorkloadError(
        f"Categorical got the choice {choice!r}; choices are numbers, texts, True or False. Name each by a "
        "text, and look the object up in build_model."
    )


Distribution = Float | Int | Categorical
SearchSpace = Mapping[str, Distribution]


def default_value(distribution: Distribution) -> HyperparameterValue:
    """Return the value that holds where a hyperparameter is not tuned: its default, else its lower end."""
    if distribution.default is not None:
        return distribution.default
    return distribution.choices[0] if isinstance(distribution, Categorical) else distribution.low
