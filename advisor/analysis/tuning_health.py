"""What a finished study shows of its own search: each look gives one sentence."""

import math
from collections.abc import Iterator, Sequence

from advisor.records.search_space import Float, Scale, SearchSpace
from advisor.records.trials import Trial, TrialState
from advisor.records.tuning import BestTrial, HealthCheck

EDGE_SHARE = 0.05
"""A best value within this share of the axis from its end lies at the edge."""
MANY_INFEASIBLE = 0.25
EARLY = 0.10
LATE = 0.75


def health_checks(
    trials: Sequence[Trial], best: BestTrial | None, space: SearchSpace, max_train_steps: int
) -> tuple[HealthCheck, ...]:
    """Look at how many trials diverged, at the edges of the space, and at where the best result lies."""
    return tuple(_checks(trials, best, space, max_train_steps))


def _checks(
    trials: Sequence[Trial], best: BestTrial | None, space: SearchSpace, max_train_steps: int
) -> Iterator[HealthCheck]:
    yield _infeasible(trials)
    if best is not None:
        yield from _edges(best, space)
        yield _position(best.step, max_train_steps)


def _infeasible(trials: Sequence[Trial]) -> HealthCheck:
    ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.INFEASIBLE)]
    diverged = [trial for trial in ended if trial.state is TrialState.INFEASIBLE]
    sentence = f"{len(diverged)} of {len(ended)} trials diverged"
    if not ended or len(diverged) <= MANY_INFEASIBLE * len(ended):
        return HealthCheck("infeasible", "ok", sentence + ".")
    values = [trial.plan.hyperparameters for trial in diverged]
    lowest = min(
        (float(value["learning_rate"]) for value in values if "learning_rate" in value), default=None
    )
    where = f", the lowest at learning rate {lowest:.3g}" if lowest is not None else ""
    return HealthCheck(
        "infeasible", "warning", f"{sentence}{where}: lower the upper end of the learning rate."
    )


def _edges(best: BestTrial, space: SearchSpace) -> Iterator[HealthCheck]:
    at_edge = [
        name for name, range_ in space.items() if isinstance(range_, Float) and _at_edge(best, name, range_)
    ]
    for name in at_edge:
        value = float(best.hyperparameters[name])
        yield HealthCheck(
            "edge",
            "warning",
            f"The best {name.replace('_', ' ')}, {value:.3g}, lies at the edge of its range: widen it.",
        )
    if not at_edge:
        yield HealthCheck("edge", "ok", "The best trial lies inside the search space.")


def _at_edge(best: BestTrial, name: str, range_: Float) -> bool:
    if name not in best.hyperparameters:
        return False
    low, value, high = (
        _on_axis(range_, end) for end in (range_.low, float(best.hyperparameters[name]), range_.high)
    )
    share = (value - low) / (high - low)
    return not EDGE_SHARE < share < 1 - EDGE_SHARE


def _on_axis(range_: Float, value: float) -> float:
    if range_.scale is Scale.LINEAR:
        return value
    return math.log(1 - value) if range_.scale is Scale.LOG_ONE_MINUS else math.log(value)


def _position(step: int, max_train_steps: int) -> HealthCheck:
    share = step / max_train_steps
    where = f"The best result lies at step {step:,} of {max_train_steps:,}"
    if share <= EARLY:
        return HealthCheck("steps", "warning", f"{where}, in the first 10 %: fewer steps would do.")
    if share > LATE:
        return HealthCheck("steps", "warning", f"{where}, in the last 25 %: try longer training.")
    return HealthCheck("steps", "ok", f"{where}.")
