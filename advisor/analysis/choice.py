"""From evidence to one recommended batch size."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.analysis.caveats import caveats
from advisor.analysis.consumption import break_even, consumption_changes
from advisor.analysis.cost import resource_cost
from advisor.analysis.limits import unmet_sentence, wanted, within
from advisor.analysis.pareto import balance, pareto_set, usage_cost
from advisor.analysis.reasons import Choice, why
from advisor.analysis.resampling import consumption_draws, is_trusted, stability, time_draws
from advisor.analysis.scaling import predict_steps, steps_at
from advisor.analysis.statistics import log_spread
from advisor.records.description import WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.recommendation import (
    Answers,
    Objective,
    Prices,
    Recommendation,
    ResourceCost,
    Wish,
)
from advisor.records.scaling import BatchSizeResult, ScalingFit

MOST_GIVEN_UP = 1.025
"""Noise never justifies a batch size that is estimated to take more than so many times the least."""
_EXACT = 1e-9
_RESOURCES: dict[Objective, Callable[[ResourceCost], Interval]] = {
    Objective.TIME: lambda cost: cost.time_to_target_s,
    Objective.COST: usage_cost,
    Objective.BALANCED: balance,
}


def recommend_batch_size(
    description: WorkloadDescription,
    throughput: Throughput,
    results: Sequence[BatchSizeResult],
    fit: ScalingFit,
    prices: Prices,
    wish: Wish,
    seed: int,
    workload_argument: str = "",
) -> tuple[Answers, Recommendation | None, tuple[ResourceCost, ...]]:
    """Return the answers, the recommendation, and what every batch size in the tried range takes.

    Candidates are the measured batch sizes between the smallest and the largest that reached the target
    and not above the saturation batch size unless they were trained. They are compared by their measured
    steps, evened out by the fitted curve. Those outside the limits of ``wish`` are left out; where all are,
    the nearest is given with what is unmet. There is no recommendation where nothing reached the target.
    ``workload_argument`` is how the user named the workload on the command line.
    """
    costs = resource_costs(throughput, results, fit, prices)
    candidates = _up_to_saturation(costs, throughput.saturation_batch_size)
    if not candidates:
        return _answers(throughput, fit, None, None), None, costs
    even = evening_factors(costs, fit)

    def best(among: Sequence[ResourceCost], objective: Objective) -> ResourceCost:
        resource = _RESOURCES[objective]
        return least(among, lambda cost: resource(cost).scaled(even[cost.batch_size]))

    allowed = within(candidates, wish)
    nearest = Objective.COST if wish.deadline_s is None else Objective.TIME
    chosen = best(allowed, wanted(wish)) if allowed else best(candidates, nearest)
    fastest, cheapest = best(candidates, Objective.TIME), best(candidates, Objective.COST)
    times = time_draws(candidates, fit, np.random.default_rng(seed))
    choice = Choice(
        target="the target" if description.target is None else str(description.target),
        objective=wanted(wish),
        currency=prices.currency,
        throughput=throughput,
        results=tuple(results),
        fit=fit,
        costs=costs,
        chosen=chosen,
        stability=stability(times, candidates.index(chosen)),
        wish=wish,
        unmet="" if allowed else unmet_sentence(candidates, wish, prices.currency),
        pareto=tuple(cost.batch_size for cost in pareto_set([_scaled(cost, even) for cost in candidates])),
    )
    draws = consumption_draws(candidates, times)
    recommendation = replace(
        _recommendation(choice, workload_argument),
        consumption=consumption_changes(candidates, candidates.index(cheapest), draws),
        break_even=tuple(break_even(candidates, candidates.index(chosen), prices, draws)),
    )
    return _answers(throughput, fit, fastest.batch_size, cheapest.batch_size), recommendation, costs


def resource_costs(
    throughput: Throughput, results: Sequence[BatchSizeResult], fit: ScalingFit, prices: Prices
) -> tuple[ResourceCost, ...]:
    """Return the cost at every measured batch size within the range that reached the target, ascending.

    Steps come from the fresh seeds where the batch size was tried, else from a fit that can be trusted.
    """
    tried = {result.batch_size: result for result in results}
    reached = [size for size, result in tried.items() if result.steps is not None]
    costs = []
    for row in throughput.table:
        if row.time_per_step_s is None or not reached or not min(reached) <= row.batch_size <= max(reached):
            continue
        steps = _steps(row.batch_size, tried.get(row.batch_size), fit)
        if steps is not None:
            devices, untried = throughput.configuration.devices, row.batch_size not in tried
            cost = resource_cost(row.batch_size, steps, row.time_per_step_s, prices, devices, untried)
            costs.append(cost)
    return tuple(costs)


def evening_factors(costs: Sequence[ResourceCost], fit: ScalingFit) -> dict[int, float]:
    """Return by batch size the factor that evens out its steps for comparison with the others.

    Seeds differ by a tenth and more, so the least of many measured sizes is often only the luckiest. The
    curve through all of them is smoother, but may not fit. Each logarithm is shrunk towards the curve by
    the share of the variance around it that the noise of its own steps explains (James and Stein 1961,
    Proc. Fourth Berkeley Symp. 1:361). All factors are 1 without a trusted fit, or without noise.
    """
    tried = [cost for cost in costs if not cost.interpolated]
    factors = {cost.batch_size: 1.0 for cost in costs}
    if not tried or fit.estimate is None or not is_trusted(fit):
        return factors
    curve = steps_at(fit.estimate, [cost.batch_size for cost in tried])
    log_distances = np.log(curve / [cost.steps.estimate for cost in tried])
    residual = max(float(np.sqrt(np.mean(log_distances**2))), _EXACT)
    shares = np.minimum(1.0, (np.array([log_spread(cost.steps) for cost in tried]) / residual) ** 2)
    evened = np.exp(shares * log_distances)
    return factors | {cost.batch_size: float(factor) for cost, factor in zip(tried, evened, strict=True)}


def least(costs: Sequence[ResourceCost], value: Callable[[ResourceCost], Interval]) -> ResourceCost:
    """Return the smallest batch size whose value is within noise of the least.

    Within noise is one standard error of the ratio (Breiman et al. 1984, Classification and Regression
    Trees, section 3.4.3), but never more than ``MOST_GIVEN_UP``. ``costs`` ascend and are not empty.
    """
    best = min(costs, key=lambda cost: value(cost).estimate)

    def within_noise(cost: ResourceCost) -> bool:
        noise = math.hypot(log_spread(value(cost)), log_spread(value(best)))
        return value(cost).estimate <= value(best).estimate * min(math.exp(min(noise, 1.0)), MOST_GIVEN_UP)

    return next(cost for cost in costs if cost is best or within_noise(cost))


def _steps(batch_size: int, result: BatchSizeResult | None, fit: ScalingFit) -> Interval | None:
    if result is None:
        return predict_steps(fit, batch_size) if is_trusted(fit) else None
    if result.steps is None:
        return None
    return result.steps_interval or Interval(result.steps, result.steps, result.steps)


def _scaled(cost: ResourceCost, even: Mapping[int, float]) -> ResourceCost:
    """Return the cost with what is compared of it evened out."""
    factor = even[cost.batch_size]
    return replace(
        cost,
        time_to_target_s=cost.time_to_target_s.scaled(factor),
        device_hours=cost.device_hours.scaled(factor),
        money=cost.money and cost.money.scaled(factor),
        energy_kwh=cost.energy_kwh and cost.energy_kwh.scaled(factor),
    )


def _up_to_saturation(costs: tuple[ResourceCost, ...], saturation: int | None) -> tuple[ResourceCost, ...]:
    """Return the costs that may be recommended: those that were trained, others up to saturation alone.

    A batch size above saturation that was trained stays: where its steps fell, it may still be fastest.
    """
    if saturation is None:
        return costs
    kept = (cost for cost in costs if cost.batch_size <= saturation or not cost.interpolated)
    return tuple(kept) or costs


def _answers(throughput: Throughput, fit: ScalingFit, fastest: int | None, cheapest: int | None) -> Answers:
    speeds = [
        (row.throughput_examples_per_s.estimate, row.batch_size)
        for row in throughput.table
        if row.throughput_examples_per_s is not None
    ]
    critical = fit.critical_batch_size if is_trusted(fit) else None
    return Answers(
        largest_feasible=throughput.largest_feasible_batch_size,
        fastest_per_example=max(speeds)[1] if speeds else None,
        critical=critical.estimate if critical else None,
        fastest_to_target=fastest,
        cheapest_to_target=cheapest,
    )


def _recommendation(choice: Choice, workload_argument: str) -> Recommendation:
    chosen = choice.chosen
    return Recommendation(
        objective=choice.objective,
        batch_size=chosen.batch_size,
        time_to_target_s=chosen.time_to_target_s,
        device_hours=chosen.device_hours,
        money=chosen.money,
        stability=choice.stability,
        why=why(choice),
        caveats=tuple(caveats(choice)),
        unmet=choice.unmet,
        pareto=choice.pareto,
        next=" ".join(["advisor tune", *filter(None, [workload_argument]), f"--batch {chosen.batch_size}"]),
    )
