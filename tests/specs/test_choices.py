"""Numbers that a caller chose are taken as they are, or refused by name, value and what is valid."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from advisor.errors import SpecError
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.specs.choices import check_numbers, check_price


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"seconds": math.nan}, "Got seconds=nan; valid is a finite number of at least 0.01."),
        ({"seconds": math.inf}, "Got seconds=inf;"),
        ({"seconds": -1}, "Got seconds=-1;"),
        ({"seconds": "soon"}, "Got seconds='soon';"),
        ({"seconds": True}, "Got seconds=True;"),
        ({"precision": 0}, "Got precision=0; valid is a finite number above 0 up to 1."),
        ({"precision": 1.1}, "Got precision=1.1;"),
        ({"trials": 2.5}, "Got trials=2.5; valid is a whole number of at least 1."),
        ({"seeds": 0}, "Got seeds=0;"),
        ({"batch_size": math.nan}, "Got batch_size=nan; valid is a whole number."),
        ({"seed": 1, "overhead": np.float32("nan")}, "Got overhead="),
        ({"prices": {"power_w": -1}}, "Got power_w=-1; valid is a finite number of at least 0."),
        ({"prices": Prices(price_per_device_hour=math.inf)}, "Got price_per_device_hour=inf;"),
        ({"prices": {"upfront_costs": {0: 5}}}, "Got batch_sizes=[0];"),
        ({"prices": Prices(upfront_costs={8: -5})}, "Got upfront_cost=-5;"),
        ({"deadline_s": 0}, "Got deadline_s=0; valid is a finite number above 0."),
        ({"max_cost": -1}, "Got max_cost=-1;"),
        ({"batch_sizes": [8, 0]}, "Got batch_sizes=[8, 0]; valid is a whole number of at least 1."),
        ({"batch_sizes": BatchSizes(maximum=0)}, "Got maximum=0;"),
        ({"batch_sizes": BatchSizes(listed=(4, 1.5))}, "Got listed=(4, 1.5);"),  # type: ignore[arg-type]
        ({"measure": MeasureRequest(seconds=math.nan)}, "Got seconds=nan;"),
    ],
)
def test_what_cannot_be_is_refused_by_name(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as seen:
        check_numbers(choices)
    assert str(seen.value).startswith(words)


@pytest.mark.parametrize(
    "choices",
    [
        {"seconds": np.float32(0.5), "trials": np.int64(3), "precision": 1, "overhead": Fraction(1, 5)},
        {"seconds": None, "prices": Prices(), "batch_sizes": BatchSizes(), "measure": MeasureRequest()},
        {"batch_sizes": (1, 2), "seed": 0, "input_workers": 0, "batch_size": -(10**400)},
        {"currency": math.nan, "refine": True},
    ],
)
def test_what_can_be_passes(choices: dict[str, Any]) -> None:
    check_numbers(choices)


@pytest.mark.parametrize(
    ("prices", "max_cost", "words"),
    [
        (
            Prices(),
            20.0,
            "--max-cost compares money, and the price of a device-hour is not known. Give it with",
        ),
        (Prices(upfront_costs={8: 1.0}), None, "--upfront-cost compares money"),
        (Prices(upfront_cost=1.0), None, "upfront in [cost] compares money"),
    ],
)
def test_money_without_a_price_is_refused(prices: Prices, max_cost: float | None, words: str) -> None:
    with pytest.raises(SpecError) as seen:
        check_price(prices, max_cost)
    assert str(seen.value).startswith(words)


def test_money_with_a_price_passes() -> None:
    check_price(Prices(0.0, upfront_cost=1.0, upfront_costs={8: 1.0}), 0.0)
    check_price(Prices(upfront_cost=0.0), None)
