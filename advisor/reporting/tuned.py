"""A study as a person reads it."""

from collections.abc import Iterator

from rich.console import RenderableType

from advisor.analysis.quantities import number
from advisor.records.tuning import TuningResult
from advisor.reporting.advice import spent_sentence
from advisor.reporting.render import bullet, command, pairs, paragraph, value


def tuning_parts(result: TuningResult) -> Iterator[RenderableType]:
    """Yield the best trial, the checks of the study's health, and what is next."""
    yield paragraph(found_sentence(result), "bold")
    if result.best is not None:
        yield pairs((name, value(given)) for name, given in result.best.hyperparameters.items())
        if result.best.checkpoint is not None:
            yield paragraph("Its checkpoint:")
            yield command(result.best.checkpoint)
    yield paragraph("")
    yield from (bullet(f"{check.check}: {check.sentence}") for check in result.health)
    yield paragraph(f"{trials_by_state(result)}. {spent_sentence(result.spent)}")
    yield paragraph("")
    yield paragraph("Next:")
    yield command(result.next)


def found_sentence(result: TuningResult) -> str:
    """Return in one sentence what the study found."""
    study, best = result.study, result.best
    if best is None:
        return f"No trial at batch size {study.batch_size:,} gave a finite validation {study.target.metric}."
    reached = "meets" if study.target.reached(best.value) else "does not meet"
    return (
        f"The best of {number(sum(result.trials.values()))} trials at batch size {study.batch_size:,} is "
        f"trial {best.number}: validation {study.target.metric} {best.value:.4g} at step {best.step:,}, "
        f"which {reached} the target ({study.target})."
    )


def trials_by_state(result: TuningResult) -> str:
    """Return how many trials ended in each state."""
    states = ", ".join(f"{number(how_many)} {state}" for state, how_many in result.trials.items() if how_many)
    return f"Trials: {states or 'none'}"
