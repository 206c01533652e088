"""Laws of resource consumption = per step × steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.cost import resource_cost
from advisor.analysis.statistics import interval_around
from advisor.records.intervals import Interval
from advisor.records.recommendation import Prices

positive = st.floats(1e-3, 1e6)


def bounds(interval: Interval | None) -> tuple[float, float, float]:
    assert interval is not None
    return interval.estimate, interval.low, interval.high


def test_an_hour_on_two_devices() -> None:
    found = resource_cost(
        64,
        Interval(3600, 3600, 3600),
        Interval(1, 1, 1),
        Prices(2.5, "EUR", 350),
        devices=2,
        interpolated=False,
    )
    assert found.time_to_target_s.estimate == 3600
    assert found.device_hours.estimate == 2
    assert bounds(found.money) == (5, 5, 5)
    assert bounds(found.energy_kwh) == pytest.approx((0.7, 0.7, 0.7))


@given(positive, positive, st.floats(0, 1), st.floats(0, 1), positive, st.integers(1, 64))
def test_everything_is_proportional(
    steps: float, time_s: float, u: float, v: float, price: float, devices: int
) -> None:
    def cost(price: float, devices: int, steps: float):  # type: ignore[no-untyped-def]
        return resource_cost(
            8,
            interval_around(steps, u),
            interval_around(time_s, v),
            Prices(price, power_w=price),
            devices,
            False,
        )

    once = cost(price, devices, steps)
    dearer, more, longer = (
        cost(2 * price, devices, steps),
        cost(price, 3 * devices, steps),
        cost(price, devices, 2 * steps),
    )
    assert bounds(dearer.money) == pytest.approx(bounds(once.money.scaled(2)))
    assert bounds(dearer.energy_kwh) == pytest.approx(bounds(once.energy_kwh.scaled(2)))
    assert dearer.time_to_target_s == once.time_to_target_s
    assert bounds(more.device_hours) == pytest.approx(bounds(once.device_hours.scaled(3)))
    assert more.time_to_target_s == once.time_to_target_s
    assert bounds(longer.money) == pytest.approx(bounds(once.money.scaled(2)))
    assert once.time_to_target_s.estimate == pytest.approx(steps * time_s)


def test_what_has_no_price_is_not_known() -> None:
    found = resource_cost(8, Interval(9, 8, 10), Interval(1, 1, 1), Prices(), 1, True)
    assert (found.money, found.energy_kwh, found.interpolated) == (None, None, True)
