"""Notes on studies for the Optuna dashboard: markdown that says in words what was found."""

from collections.abc import Iterable, Mapping

from advisor.analysis.quantities import count, number
from advisor.records.scaling import BatchSizeResult
from advisor.records.target import Target
from advisor.records.tuning import TuningResult
from advisor.reporting.render import value
from advisor.reporting.tuned import found_sentence, trials_by_state


def study_note(result: TuningResult) -> str:
    """Return what a tuning study found, the health of the study, and what to do next."""
    parts = [f"**{found_sentence(result)}**"]
    if result.best is not None:
        parts.append(_hyperparameters(result.best.hyperparameters))
        if result.best.checkpoint is not None:
            parts.append(f"Checkpoint: `{result.best.checkpoint}`")
    parts.append(_items(f"**{check.check}**: {check.sentence}" for check in result.health))
    parts.append(f"{trials_by_state(result)}.")
    parts.append(f"Next: `{result.next}`")
    return _joined(parts)


def search_note(result: BatchSizeResult, target: Target) -> str:
    """Return what the search for steps to ``target`` found at one batch size."""
    parts = [f"**{_found(result, target)}**", _hyperparameters(result.best or {})]
    if result.at_edge:
        parts.append("These lie at the edge of the range tried, so fewer steps may be possible beyond it.")
    parts.append(_trials(result))
    return _joined(parts)


def _found(result: BatchSizeResult, target: Target) -> str:
    if result.steps is None:
        return f"Batch size {number(result.batch_size)} did not reach {target}."
    interval = result.steps_interval
    between = f" ({count(interval.low)} to {count(interval.high)})" if interval else ""
    return (
        f"Batch size {number(result.batch_size)} reaches {target} in about {count(result.steps)} "
        f"steps{between}, which is {count(result.steps * result.batch_size)} examples."
    )


def _trials(result: BatchSizeResult) -> str:
    """Return how many trainings there were; those that selected and those that measured are all trials."""
    diverged = f", of which {number(result.infeasible)} diverged" if result.infeasible else ""
    seeds = len(result.observations)
    measured = f"; {number(seeds)} of them measured the steps with fresh seeds" if result.best else ""
    return f"{number(result.trials)} trials in all{diverged}{measured}."


def _hyperparameters(values: Mapping[str, object]) -> str:
    return _items(f"`{name}` = {value(given)}" for name, given in values.items())


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)
