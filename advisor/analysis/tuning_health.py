"""What a finished study shows of its own search: each look gives one sentence."""

import math
from collections.abc import Iterator, Sequence

from advisor.analysis.quantities import number
from advisor.records.search_space import Categorical, Float, Int, Scale, SearchSpace
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
    if len(diverged) <= MANY_INFEASIBLE * len(ended):
        return HealthCheck("infeasible", "ok", sentence + ".")
    values = [trial.plan.hyperparameters for trial in diverged]
    rates = [float(value["learning_rate"]) for value in values if "learning_rate" in value]
    if not rates:
        return HealthCheck("infeasible", "warning", f"{sentence}: narrow the search space.")
    lowest = f"the lowest at learning rate {number(min(rates))}"
    return HealthCheck(
        "infeasible", "warning", f"{sentence}, {lowest}: lower the upper end of the learning rate."
    )


def _edges(best: BestTrial, space: SearchSpace) -> Iterator[HealthCheck]:
    ends = {name: _end(best, name, space) for name in space}
    at_edge = {name: end for name, end in ends.items() if end}
    for name, end in at_edge.items():
        value = best.hyperparameters[name]
        assert isinstance(value, int | float)
        yield HealthCheck(
            "edge",
            "warning",
            f"The best {name.replace('_', ' ')}, {number(value)}, lies at the {end} end of its range: "
            "widen it there, if values beyond make sense.",
        )
    if not at_edge:
        yield HealthCheck("edge", "ok", "The best trial lies inside the search space.")


def _end(best: BestTrial, name: str, space: SearchSpace) -> str | None:
    """Return the end of the range at which the best value of a hyperparameter lies, None where inside."""
    range_, value = space[name], best.hyperparameters.get(name)
    if isinstance(range_, Categorical) or not isinstance(value, int | float) or range_.low == range_.high:
        return None
    inside = min(max(value, range_.low), range_.high)
    low, at, high = (_on_axis(range_, end) for end in (range_.low, inside, range_.high))
    share = (at - low) / (high - low)
    if EDGE_SHARE < share < 1 - EDGE_SHARE:
        return None
    return "lower" if share <= EDGE_SHARE else "upper"


def _on_axis(range_: Float | Int, value: float) -> float:
    if isinstance(range_, Float) and range_.scale is Scale.LOG_ONE_MINUS:
        return -math.log(1 - value)
    return math.log(value) if range_.log else value


def _position(step: int, max_train_steps: int) -> HealthCheck:
    share = step / max_train_steps
    where = f"The best result lies at step {step:,} of {max_train_steps:,}"
    if share <= EARLY:
        return HealthCheck("steps", "warning", f"{where}, in the first 10 %: fewer steps would do.")
    if share > LATE:
        return HealthCheck("steps", "warning", f"{where}, in the last 25 %: try longer training.")
    return HealthCheck("steps", "ok", f"{where}.")
