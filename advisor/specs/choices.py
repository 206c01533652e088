"""Numbers that a caller chose, checked before anything is done with them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from numbers import Integral, Real
from typing import Any

from advisor.errors import SpecError
from advisor.records.recommendation import Prices


@dataclass(frozen=True)
class Bounds:
    """Finite numbers from ``least``, or above it where ``above``, up to ``most``; ``whole`` ones alone."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    whole: bool = False

    def __str__(self) -> str:
        words = ["a whole number" if self.whole else "a finite number"]
        if math.isfinite(self.least):
            words.append(f"{'above' if self.above else 'of at least'} {self.least:,}")
        if math.isfinite(self.most):
            words.append(f"up to {self.most:,}")
        return " ".join(words)

    def hold(self, value: object) -> bool:
        """Return whether ``value`` is such a number; numpy's are numbers too, truth values are none."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        number: Any = value  # The type Real has no comparisons.
        within = self.least < number if self.above else self.least <= number
        return bool(within and number <= self.most and abs(number) < math.inf)


_COUNT = Bounds(1, whole=True)
_FROM_ZERO = Bounds(0, whole=True)
_AMOUNT = Bounds(0)

_VALID = {
    "seconds": Bounds(0.01),
    "precision": Bounds(0, 1, above=True),
    # Systems count what they wait in milliseconds, in a number of 32 bits.
    "timeout_s": Bounds(0, 1_000_000, above=True),
    "input_workers": _FROM_ZERO,
    "batch_sizes": _COUNT,
    "listed": _COUNT,
    "minimum": _COUNT,
    "maximum": _COUNT,
    "batch_size": Bounds(whole=True),
    "trials": _COUNT,
    "trials_per_batch_size": _COUNT,
    "seeds": _COUNT,
    "seed": _FROM_ZERO,
    "max_train_steps": _COUNT,
    "max_examples_per_trial": _COUNT,
    "spend_examples": _COUNT,
    "spend_time_s": Bounds(0, above=True),
    "steps": _COUNT,
    "examples": _COUNT,
    "overhead": Bounds(0, 100, above=True),
    "price_per_device_hour": _AMOUNT,
    "power_w": _AMOUNT,
    "upfront_cost": _AMOUNT,
    "deadline_s": Bounds(0, above=True),
    "max_cost": _AMOUNT,
}


def check_numbers(choices: Mapping[str, object]) -> None:
    """Raise SpecError for the first number in ``choices``, by name, that is not what it must be.

    None is left to the default. Mappings and records are looked into, lists item by item.
    """
    for name, value in choices.items():
        if name == "upfront_costs" and isinstance(value, Mapping):
            check_numbers({"batch_sizes": [*value]})
            for amount in value.values():
                _check("upfront_cost", amount)
        elif isinstance(value, Mapping):
            check_numbers(value)
        elif is_dataclass(value):
            check_numbers(vars(value))
        elif name in _VALID:
            _check(name, value)


def check_price(prices: Prices, max_cost: float | None) -> None:
    """Raise SpecError where money is asked for and a device-hour has no price."""
    needed = {
        "--max-cost": max_cost is not None,
        "--upfront-cost": bool(prices.upfront_costs),
        "upfront in [cost]": bool(prices.upfront_cost),
    }
    asked = [name for name, is_asked in needed.items() if is_asked]
    if asked and prices.price_per_device_hour is None:
        raise SpecError(
            f"{asked[0]} compares money, and the price of a device-hour is not known. Give it with --price, "
            "or as price_per_device_hour under [cost] in a study file."
        )


def _check(name: str, value: object) -> None:
    for item in value if isinstance(value, list | tuple) else (value,):
        if item is not None and not _VALID[name].hold(item):
            raise SpecError(f"Got {name}={value!r}; valid is {_VALID[name]}.")
