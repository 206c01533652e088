"""What-if over device counts and prices, from a measured time per step and a fitted curve of steps.

N devices share a global batch of B examples, B / N each. A step takes what one device takes for its share
of the batch, divided by 1 − the share of a step that synchronization takes (N > 1). Steps to target depend
on B alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.analysis.choice import evening_factors, least
from advisor.analysis.cost import resource_cost
from advisor.analysis.pareto import pareto_set
from advisor.analysis.resampling import is_trusted
from advisor.analysis.scaling import predict_steps
from advisor.analysis.statistics import interval_around, normal_quantile
from advisor.analysis.throughput import reference_batch_size
from advisor.errors import InconclusiveError
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.plan import DeviceOption, Extrapolation, MeasuredRange, Scenario
from advisor.records.recommendation import Advice, Prices, ResourceCost

"""Outcomes of a fit whose curve tells steps at batch sizes that were not trained."""


@dataclass(frozen=True)
class DeviceTiming:
    """Time per step on any number of devices, from ``throughput`` measured on one number of them.

    ``synchronization_share`` is the part of a step on two devices or more, from 0 to below 1. No batch takes
    more than ``training_examples``.
    """

    throughput: Throughput
    synchronization_share: float
    training_examples: int

    @property
    def devices(self) -> int:
        """How many devices were measured."""
        return self.throughput.configuration.devices

    @property
    def sizes(self) -> Sequence[int]:
        """Return the global batch sizes that ran on them, ascending; not empty."""
        return [row.batch_size for row in self.throughput.table if row.time_per_step_s]

    def time_per_step_s(self, devices: int, batch_size: int) -> Interval | None:
        """Return seconds per step at a global ``batch_size``, or None where nothing tells.

        Measured where this share of a batch was timed, else on the fitted line, log-normal around it with
        its residual.
        """
        factor = self._slowdown(devices) / self._slowdown(self.devices)
        measured = self._as_measured(devices, batch_size)
        if measured.is_integer() and (known := self.throughput.time_per_step_s(int(measured))):
            return known.scaled(factor)
        model = self.throughput.time_model
        if model is None:
            return None
        line_s = model.fixed_s + model.per_example_s * measured
        return interval_around(factor * line_s, normal_quantile(0.95) * model.residual_log_rms)

    def is_measured(self, devices: int, batch_size: int) -> bool:
        """Return whether a device's share of the batch lies within those that were timed."""
        return min(self.sizes) <= self._as_measured(devices, batch_size) <= max(self.sizes)

    def batch_sizes(self, devices: int, most: int) -> Sequence[int]:
        """Return the global batch sizes to look at on ``devices``, ascending.

        They are those that give each device a share that was timed, and those that were timed as a whole;
        none gives a device more than it had at a global batch size of ``most`` when measured.
        """
        shared = {size * devices // self.devices for size in self.sizes if size * devices % self.devices == 0}
        whole = {size for size in self.sizes if size % devices == 0}
        possible = (size for size in shared | whole if size <= self.training_examples)
        return sorted(size for size in possible if self._as_measured(devices, size) <= most)

    def _as_measured(self, devices: int, batch_size: int) -> float:
        """Return the global batch size that gave each measured device the same share of the batch."""
        return batch_size * self.devices / devices

    def _slowdown(self, devices: int) -> float:
        return 1.0 if devices == 1 else 1 / (1 - self.synchronization_share)


def what_if(
    timing: DeviceTiming, advice: Advice | None, options: Sequence[DeviceOption], prices: Prices
) -> tuple[Scenario, ...]:
    """Return what each option would give, in the order of ``options``.

    ``prices`` hold where an option has no price of its own. The device count that the advice was found on
    keeps the recommended batch size; on others it is the one of the least time to target. Without ``advice``,
    or where it tells no steps, a scenario has no cost. Raises InconclusiveError where no batch size is
    known that a number of devices could share.
    """
    one = _best_cost(timing, advice, 1, prices)
    found = [_scenario(timing, advice, option, prices) for option in options]
    front = pareto_front([scenario.cost for scenario in found])
    return tuple(
        replace(scenario, speed_up=_speed_up(one, scenario.cost), on_pareto_front=is_best)
        for scenario, is_best in zip(found, front, strict=True)
    )


def measured_range(throughput: Throughput, advice: Advice | None) -> MeasuredRange:
    """Return the ranges of batch sizes that were timed and trained."""
    where = throughput.configuration
    sizes = [row.batch_size for row in throughput.table if row.time_per_step_s]
    reached = _reached(advice) if advice else []
    return MeasuredRange(
        where.devices,
        where.device_kind,
        (min(sizes) / where.devices, max(sizes) / where.devices),
        (min(reached), max(reached)) if reached else None,
    )


def pareto_front(costs: Sequence[ResourceCost | None]) -> Sequence[bool]:
    """Return for each cost whether it is in the Pareto set over time to target and price.

    The price is money where all have it, else device-hours. What has no cost is not in the set.
    """
    priced = all(cost is None or cost.money for cost in costs)
    places = [place for place, cost in enumerate(costs) if cost is not None]
    compared = [
        replace(cost, money=cost.money if priced else None, energy_kwh=None)
        for cost in costs
        if cost is not None
    ]
    front = [id(cost) for cost in pareto_set(compared)]
    kept = {place for place, cost in zip(places, compared, strict=True) if id(cost) in front}
    return [place in kept for place in range(len(costs))]


def _scenario(timing: DeviceTiming, advice: Advice | None, option: DeviceOption, prices: Prices) -> Scenario:
    if option.price_per_device_hour is not None:
        prices = replace(prices, price_per_device_hour=option.price_per_device_hour)
    cost = _best_cost(timing, advice, option.devices, prices)
    batch_size, time_s = (cost.batch_size, cost.time_per_step_s) if cost else _widest(timing, option.devices)
    return Scenario(
        option=DeviceOption(option.devices, prices.price_per_device_hour),
        batch_size=batch_size,
        time_per_step_s=time_s,
        throughput_examples_per_s=time_s.inverse(batch_size),
        extrapolated=tuple(_extrapolated(timing, advice if cost else None, option.devices, batch_size)),
        cost=cost,
    )


def _best_cost(
    timing: DeviceTiming, advice: Advice | None, devices: int, prices: Prices
) -> ResourceCost | None:
    if advice is None:
        return None
    costs = _costs(timing, advice, devices, prices)
    if devices == timing.devices and advice.recommendation is not None:
        chosen = advice.recommendation.batch_size
        return next((cost for cost in costs if cost.batch_size == chosen), None)
    if not costs:
        return None
    even = evening_factors(costs, advice.fit)
    return least(costs, lambda cost: cost.time_to_target_s.scaled(even[cost.batch_size]))


def _costs(timing: DeviceTiming, advice: Advice, devices: int, prices: Prices) -> Sequence[ResourceCost]:
    """Return the costs at all batch sizes whose time per step and steps to target are known, ascending.

    No device gets a larger share than in the advice: one device would else seem slow beside several that may
    use shares that the advice never looked at.
    """
    trained = {cost.batch_size: cost.steps for cost in advice.costs if not cost.interpolated}
    most = max((cost.batch_size for cost in advice.costs), default=0)
    costs = []
    for size in timing.batch_sizes(devices, most):
        time_s, steps = timing.time_per_step_s(devices, size), trained.get(size) or _predicted(advice, size)
        if time_s and steps:
            costs.append(resource_cost(size, steps, time_s, prices, devices, size not in trained))
    return costs


def _predicted(advice: Advice, batch_size: int) -> Interval | None:
    """Return steps to target by the curve; none where it is not trusted, or training says otherwise.

    A batch size that did not reach the target bars those further out.
    """
    reached = _reached(advice)
    missed = [result.batch_size for result in advice.results if result.steps is None]
    barred = any(
        size == batch_size or max(reached) < size <= batch_size or batch_size <= size < min(reached)
        for size in missed
    )
    return None if barred or not is_trusted(advice.fit) else predict_steps(advice.fit, batch_size)


def _widest(timing: DeviceTiming, devices: int) -> tuple[int, Interval]:
    """Return the largest batch size that still gains throughput on each device, and its time per step."""
    most = reference_batch_size(timing.throughput.table) or max(timing.sizes)
    times = [(size, timing.time_per_step_s(devices, size)) for size in timing.batch_sizes(devices, most)]
    known = [(size, time_s) for size, time_s in times if time_s]
    if not known:
        raise InconclusiveError(
            f"No batch size is known that {devices:,} devices could share: the training split has "
            f"{timing.training_examples:,} examples, and shares that were not timed are told from three "
            "timed batch sizes on. Name fewer devices, or time more batch sizes with `advisor measure`."
        )
    return known[-1]


def _extrapolated(
    timing: DeviceTiming, advice: Advice | None, devices: int, batch_size: int
) -> Sequence[Extrapolation]:
    reached = _reached(advice) if advice else []
    outside = {
        Extrapolation.DEVICES: devices != timing.devices,
        Extrapolation.TIME_PER_STEP: not timing.is_measured(devices, batch_size),
        Extrapolation.STEPS: bool(reached) and not min(reached) <= batch_size <= max(reached),
    }
    return [part for part, is_outside in outside.items() if is_outside]


def _reached(advice: Advice) -> Sequence[int]:
    return [result.batch_size for result in advice.results if result.steps is not None]


def _speed_up(one: ResourceCost | None, other: ResourceCost | None) -> float | None:
    return one.time_to_target_s.estimate / other.time_to_target_s.estimate if one and other else None
