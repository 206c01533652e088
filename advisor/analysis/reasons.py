"""Why a batch size was chosen and what speaks against trusting it, in plain sentences."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.analysis.quantities import count, duration, number, percent
from advisor.analysis.statistics import spread_factor
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Objective, ResourceCost
from advisor.records.scaling import BatchSizeResult, FitOutcome, ScalingFit

WIDE = 2.0
"""An interval whose bounds differ by more than this factor is worth a sentence."""
UNSTABLE = 0.5
CONTRADICTION = 4.0
"""Batch sizes further apart than this factor contradict one another on a grid of factors of two."""


@dataclass(frozen=True)
class Choice:
    """A chosen batch size and the evidence that it was chosen from; ``costs`` ascend."""

    target: str
    objective: Objective
    currency: str
    throughput: Throughput
    results: tuple[BatchSizeResult, ...]
    fit: ScalingFit
    costs: tuple[ResourceCost, ...]
    chosen: ResourceCost
    stability: float

    @property
    def result(self) -> BatchSizeResult | None:
        """What the search found at the chosen batch size, None where it was not tried."""
        found = (result for result in self.results if result.batch_size == self.chosen.batch_size)
        return next(found, None)


def why(choice: Choice) -> str:
    """Return two sentences: what the chosen batch size takes, and how its neighbours compare."""
    source = "by the fitted curve in" if choice.chosen.interpolated else "in"
    first = (
        f"Batch size {choice.chosen.batch_size:,} reaches {choice.target} {source} about "
        f"{_product(choice.chosen)} of training{_spent(choice)}."
    )
    index = choice.costs.index(choice.chosen)
    larger = choice.costs[index + 1] if index + 1 < len(choice.costs) else None
    smaller = choice.costs[index - 1] if index else None
    above, below = _neighbour("larger", larger, choice), _neighbour("smaller", smaller, choice)
    return f"{first} {above[0].upper()}{above[1:]}; {below}."


def caveats(choice: Choice) -> Iterator[str]:
    """Yield what a reader should know before trusting the choice, the gravest first."""
    yield from _caveats_on_steps(choice)
    yield from _caveats_on_range(choice)
    yield from _caveats_on_curve(choice)
    yield from _caveats_on_tuning(choice.results)


def _caveats_on_steps(choice: Choice) -> Iterator[str]:
    batch_size, result = choice.chosen.batch_size, choice.result
    if choice.chosen.interpolated:
        yield f"Batch size {batch_size:,} was not trained: its steps come from the fitted curve."
    if result is not None and result.at_edge:
        yield (
            f"The best hyperparameters at batch size {batch_size:,} lie at the edge of the range tried, "
            "so fewer steps may be possible."
        )
    if result is not None and len(result.observations) == 1:
        yield f"The steps at batch size {batch_size:,} come from one fresh seed only."
    factor = spread_factor(choice.chosen.time_to_target_s)
    if math.isinf(factor):
        yield "The evidence does not bound the time to target."
    elif factor > WIDE:
        yield f"The time to target is uncertain by a factor of {number(factor)}."
    if choice.stability < UNSTABLE:
        yield (
            f"Only {percent(choice.stability)} of resampled outcomes put batch size {batch_size:,} within "
            "5 % of the best, so a neighbour may serve as well or better."
        )


def _caveats_on_range(choice: Choice) -> Iterator[str]:
    sizes = [cost.batch_size for cost in choice.costs]
    tried = [result.batch_size for result in choice.results]
    chosen, throughput = choice.chosen.batch_size, choice.throughput
    missed = [result.batch_size for result in choice.results if result.steps is None]
    if missed:
        yield f"The target was not reached at batch size {_listed(missed)}."
    limits = (throughput.saturation_batch_size, throughput.largest_feasible_batch_size)
    if chosen == max(tried) and chosen not in limits:
        yield f"Batch size {chosen:,} is the largest that was tried: a larger one may do better."
    if chosen == min(tried) and len(sizes) > 1:
        yield f"Batch size {chosen:,} is the smallest that was tried: a smaller one may do better."
    if throughput.saturation_batch_size is None:
        yield "Throughput still grew at the largest batch size measured, so saturation was not seen."


def _caveats_on_curve(choice: Choice) -> Iterator[str]:
    fit = choice.fit
    if fit.outcome is not FitOutcome.OK:
        yield str(fit.outcome)
    elif "critical_batch_size" in fit.extrapolated and fit.critical_batch_size is not None:
        yield (
            f"The critical batch size, {count(fit.critical_batch_size.estimate)}, lies outside the batch "
            "sizes tried and is extrapolated."
        )
    optimum = _optimum_of_models(choice)
    if optimum is not None and _ratio(optimum, choice.chosen.batch_size) > CONTRADICTION:
        yield (
            f"The fitted curve and the time model together put the optimum near {count(optimum)}, "
            f"far from the measured {choice.chosen.batch_size:,}: one of them fits badly."
        )


def _caveats_on_tuning(results: Sequence[BatchSizeResult]) -> Iterator[str]:
    ranges = _hyperparameter_ranges(results)
    if ranges:
        yield (
            f"The hyperparameters were tuned at each batch size ({ranges}): another batch size needs its own."
        )


def _optimum_of_models(choice: Choice) -> float | None:
    """Return the optimum sqrt(a B_c / b) of a time a + b B on a hyperbola, within the range of costs."""
    model, fit = choice.throughput.time_model, choice.fit
    if model is None or fit.estimate is None or fit.outcome is not FitOutcome.OK:
        return None
    _, critical, _ = fit.estimate
    sizes = [cost.batch_size for cost in choice.costs]
    within = model.per_example_s * max(sizes) ** 2 > model.fixed_s * critical
    optimum = math.sqrt(model.fixed_s * critical / model.per_example_s) if within else max(sizes)
    return float(max(optimum, min(sizes)))


def _neighbour(direction: str, other: ResourceCost | None, choice: Choice) -> str:
    if other is None:
        return f"no {direction} batch size is known to reach the target"
    verdict = _compared(other, choice.chosen)
    return f"the next {direction}, {other.batch_size:,}, takes {_product(other)}: {verdict}"


def _compared(other: ResourceCost, chosen: ResourceCost) -> str:
    if other.time_to_target_s.estimate <= chosen.time_to_target_s.estimate:
        return "not faster by more than noise"
    if other.time_per_step_s.estimate < chosen.time_per_step_s.estimate:
        return "shorter steps, but more of them"
    if other.steps.estimate < chosen.steps.estimate:
        return "fewer steps, but each takes longer"
    return "no fewer steps, and none of them shorter"


def _product(cost: ResourceCost) -> str:
    return (
        f"{count(cost.steps.estimate)} steps × {duration(cost.time_per_step_s.estimate)} = "
        f"{duration(cost.time_to_target_s.estimate)}"
    )


def _spent(choice: Choice) -> str:
    if choice.objective is Objective.TIME:
        return ""
    money, hours = choice.chosen.money, choice.chosen.device_hours
    spent = f"{number(hours.estimate)} device-hours"
    if money is not None:
        spent = f"{number(money.estimate)} {choice.currency}"
    return f" and {spent} (on the same devices at one price the fastest is the cheapest)"


def _hyperparameter_ranges(results: Sequence[BatchSizeResult]) -> str:
    values: dict[str, list[float]] = {}
    for result in results:
        for name, value in (result.best or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(name, []).append(value)
    return ", ".join(
        f"{name} {min(found):.3g} to {max(found):.3g}"
        for name, found in values.items()
        if min(found) != max(found)
    )


def _listed(sizes: Sequence[int]) -> str:
    *others, last = (number(size) for size in sorted(sizes))
    return f"{', '.join(others)} and {last}" if others else last


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)
