"""Time and resources to the target: resource consumption per step × steps."""

from advisor.analysis.statistics import product
from advisor.records.intervals import Interval
from advisor.records.recommendation import Prices, ResourceCost

SECONDS_PER_HOUR = 3600.0
WATTS_PER_KILOWATT = 1000.0


def resource_cost(
    batch_size: int,
    steps: Interval,
    time_per_step_s: Interval,
    prices: Prices,
    devices: int,
    interpolated: bool,
) -> ResourceCost:
    """Return what training to the target takes at ``batch_size`` on ``devices`` devices.

    ``prices.power_w`` is what one device draws. ``interpolated`` says that ``steps`` come from the fitted
    curve and not from training at this batch size.
    """
    time_s = product(steps, time_per_step_s)
    device_hours = time_s.scaled(devices / SECONDS_PER_HOUR)
    price, power_w = prices.price_per_device_hour, prices.power_w
    return ResourceCost(
        batch_size=batch_size,
        steps=steps,
        time_per_step_s=time_per_step_s,
        time_to_target_s=time_s,
        device_hours=device_hours,
        money=None if price is None else device_hours.scaled(price),
        energy_kwh=None if power_w is None else device_hours.scaled(power_w / WATTS_PER_KILOWATT),
        interpolated=interpolated,
    )
