"""What speaks against trusting a choice, in plain sentences."""

import math
from collections.abc import Iterator, Sequence

from advisor.analysis.quantities import count, number, percent
from advisor.analysis.reasons import Choice
from advisor.analysis.statistics import spread_factor
from advisor.records.description import WorkloadDescription
from advisor.records.scaling import BatchSizeResult, FitOutcome

WIDE = 2.0
"""An interval whose bounds differ by more than this factor is worth a sentence."""
UNSTABLE = 0.5
CONTRADICTION = 4.0
"""Batch sizes further apart than this factor contradict one another on a grid of factors of two."""


FEW_VALIDATION_EXAMPLES = 100
"""Of fewer examples each counts for more than 1 % of a metric such as accuracy."""


def caveats(choice: Choice) -> Iterator[str]:
    """Yield what a reader should know before trusting the choice, the gravest first."""
    yield from _caveats_on_steps(choice)
    yield from _caveats_on_missed(choice.results)
    yield from _caveats_on_range(choice)
    yield from _caveats_on_curve(choice)
    yield from _caveats_on_tuning(choice.results)


def caveats_on_validation(description: WorkloadDescription) -> Iterator[str]:
    """Yield what a small validation split does to the steps to a target on it."""
    examples = description.examples["validation"]
    if examples < FEW_VALIDATION_EXAMPLES:
        yield (
            f"The validation split has {examples:,} examples, each of which counts for "
            f"{percent(1 / examples)} of its result, so that the steps to the target are partly luck: use "
            f"{FEW_VALIDATION_EXAMPLES:,} or more."
        )


def _caveats_on_steps(choice: Choice) -> Iterator[str]:
    batch_size, result = choice.chosen.batch_size, choice.result
    if choice.chosen.interpolated:
        yield f"Batch size {batch_size:,} was not trained: its steps come from the fitted curve."
    edges = [found.batch_size for found in choice.results if found.at_edge]
    if edges:
        yield (
            f"The best hyperparameters at batch size {_listed(edges)} lie at the edge of the range tried, "
            "so fewer steps may be possible there."
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


def _caveats_on_missed(results: Sequence[BatchSizeResult]) -> Iterator[str]:
    missed = [result for result in results if result.steps is None]
    diverged = [result.batch_size for result in missed if result.infeasible == result.trials > 0]
    if diverged:
        yield f"Every training diverged at batch size {_listed(diverged)}."
    given_up = [result for result in missed if result.batch_size not in diverged]
    if given_up:
        sizes = _listed([result.batch_size for result in given_up])
        yield (
            f"The target was not reached at batch size {sizes} within {number(_examples(given_up))} "
            "examples, where trainings were given up. Such a budget of examples shows the regime of perfect "
            "scaling alone, since beyond it larger batch sizes need more examples: allow more for each trial "
            "before ruling these out."
        )


def _examples(given_up: Sequence[BatchSizeResult]) -> int | None:
    """Return the most examples after which a training that missed the target was given up."""
    ends = (
        round(found.crossing.low * found.batch_size)
        for result in given_up
        for found in result.observations
        if found.crossing.censored
    )
    return max(ends, default=None)


def _caveats_on_range(choice: Choice) -> Iterator[str]:
    sizes = [cost.batch_size for cost in choice.costs]
    tried = [result.batch_size for result in choice.results]
    chosen, throughput = choice.chosen.batch_size, choice.throughput
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
