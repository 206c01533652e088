"""The advice as a person reads it: the answer, how sure it is, what is next, then the evidence."""

from collections.abc import Iterator

from rich.console import RenderableType

from advisor.analysis.quantities import count, duration, number, percent
from advisor.records.recommendation import Advice, Recommendation, ResourceCost, RuleOfThumb, Spent
from advisor.records.scaling import BatchSizeResult, ScalingFit
from advisor.reporting.consumption import consumption_parts
from advisor.reporting.render import (
    about_count,
    about_duration,
    bullet,
    command,
    heading,
    paragraph,
    table,
    values,
)


def advice_parts(advice: Advice) -> Iterator[RenderableType]:
    """Yield the parts of the whole advice."""
    yield from _answer(advice)
    yield heading("Steps to target (95 % intervals)")
    yield _steps_table(advice)
    if advice.costs:
        yield heading("Resource cost = resource consumption per step × steps (95 % intervals)")
        yield cost_table(advice)
        if any(cost.interpolated for cost in advice.costs):
            yield paragraph("* : not trained; steps from the fitted curve.")
    if advice.recommendation is not None:
        yield from consumption_parts(advice.recommendation, advice.prices.currency)
    yield heading("Batch sizes that are easily confused")
    yield table(("", "batch size", "what it is"), _answer_rows(advice), left=("", "what it is"))
    yield heading("The fitted curve")
    yield paragraph(str(advice.fit.outcome))
    yield from fit_parts(advice.fit)
    if advice.further:
        yield paragraph(advice.further)
    if advice.noise_scale is not None:
        yield heading("Hint, not the answer: the gradient noise scale")
        yield paragraph(advice.noise_scale.sentence)
    yield heading("Spent on this answer")
    yield paragraph(spent_sentence(advice.spent))


def rule_of_thumb_parts(found: RuleOfThumb) -> Iterator[RenderableType]:
    """Yield the parts of a rule of thumb."""
    yield paragraph(f"Rule of thumb: {found.why}", "bold")
    yield paragraph("")
    yield from (bullet(caveat) for caveat in found.caveats)
    yield paragraph("")
    yield paragraph("For the answer, train to a target:")
    yield command(found.next)


def spent_sentence(spent: Spent) -> str:
    """Return what was used up, in one sentence."""
    return (
        f"{number(spent.trials)} trials, {number(spent.steps)} steps, {number(spent.examples)} examples "
        f"and {number(spent.evaluations)} evaluations, {duration(float(spent.wall_s))} in all."
    )


def _answer(advice: Advice) -> Iterator[RenderableType]:
    recommendation = advice.recommendation
    if recommendation is None:
        target = advice.description.target or "the target"
        yield paragraph(f"No batch size is recommended: none that was tried reached {target}.", "bold")
        yield paragraph("Choose an easier target, or let each trial train on more examples.")
        return
    yield paragraph(recommendation.why, "bold")
    yield paragraph("")
    if not recommendation.unmet:
        yield paragraph(how_sure(recommendation))
    yield from (bullet(caveat) for caveat in recommendation.caveats)
    yield paragraph("")
    yield paragraph("Next, tune the other hyperparameters at this batch size:")
    yield command(recommendation.next)


def how_sure(recommendation: Recommendation) -> str:
    """Say how far the time to target and the choice may be off."""
    time_s = recommendation.time_to_target_s
    return (
        f"How sure: with {percent(time_s.level)} confidence it takes {duration(time_s.low)} to "
        f"{duration(time_s.high)}, and in {percent(recommendation.stability)} of resampled outcomes no "
        "batch size is better by more than 5 %."
    )


def _steps_table(advice: Advice) -> RenderableType:
    return table(
        ("batch size", "steps", "examples", "trials", "diverged", "best hyperparameters"),
        [_steps_row(result) for result in advice.results],
        left=("best hyperparameters",),
    )


def _steps_row(result: BatchSizeResult) -> tuple[str, ...]:
    steps = about_count(result.steps_interval) or (count(result.steps) if result.steps else "not reached")
    edge = " (edge)" if result.at_edge else ""
    return (
        number(result.batch_size),
        steps,
        count(result.steps * result.batch_size) if result.steps else "",
        number(result.trials),
        number(result.infeasible) if result.infeasible else "",
        values((result.best or {}).items()) + edge,
    )


def cost_table(advice: Advice) -> RenderableType:
    """Return what each batch size takes to the target."""
    return table(
        (
            "batch size",
            "time per step",
            "time to target",
            "device-hours",
            advice.prices.currency,
            "kWh",
        ),
        [_cost_row(cost) for cost in advice.costs],
    )


def _cost_row(cost: ResourceCost) -> tuple[str, ...]:
    return (
        number(cost.batch_size) + ("*" if cost.interpolated else ""),
        duration(cost.time_per_step_s.estimate),
        about_duration(cost.time_to_target_s),
        number(cost.device_hours.estimate),
        number(cost.money.estimate) if cost.money else "",
        number(cost.energy_kwh.estimate) if cost.energy_kwh else "",
    )


def _answer_rows(advice: Advice) -> Iterator[tuple[str, str, str]]:
    answers, more = advice.answers, percent(advice.fit.overhead)
    usage = "device-hours" if advice.prices.price_per_device_hour is None else advice.prices.currency
    yield "the largest that fits", number(answers.largest_feasible), "largest that was measured and ran"
    yield "the fastest per example", number(answers.fastest_per_example), "highest throughput, examples/s"
    yield "the end of perfect scaling", count(answers.critical), f"critical: examples {more} above the fewest"
    yield "the fastest to the target", _or_none(answers.fastest_to_target), "least time per step × steps"
    yield "the cheapest to the target", _or_none(answers.cheapest_to_target), f"least {usage} to the target"


def _or_none(batch_size: int | None) -> str:
    return "none reached it" if batch_size is None else number(batch_size)


def fit_parts(fit: ScalingFit) -> Iterator[RenderableType]:
    """Yield the named batch sizes of the fitted curve, and how closely it fits."""
    rows = list(_fit_rows(fit))
    if rows:
        yield paragraph("")
        yield table(("", "95 % interval", "where"), rows, left=("", "where"))
    if fit.residual_log_rms is not None:
        yield paragraph(f"The measured steps lie {percent(fit.residual_log_rms)} off the curve, typically.")


def _fit_rows(fit: ScalingFit) -> Iterator[tuple[str, str, str]]:
    """Yield the named batch sizes and the ends of the curve, each with its definition."""
    more = percent(fit.overhead)
    named = (
        ("critical_batch_size", "critical batch size", f"examples {more} above the fewest"),
        ("half_efficiency_batch_size", "half-efficiency batch size", "examples twice the fewest"),
        ("maximum_useful_batch_size", "maximum useful batch size", "steps 10 % above the fewest"),
        ("min_steps", "fewest steps", "at very large batch sizes"),
        ("min_examples", "fewest examples", "at very small batch sizes"),
    )
    for field, name, where in named:
        outside = "; extrapolated" if field in fit.extrapolated else ""
        if (interval := getattr(fit, field)) is not None:
            yield name, about_count(interval), where + outside
