"""One trial as Optuna keeps it."""

import math
from collections.abc import Mapping
from typing import Any

import optuna

from advisor.errors import StorageError
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.trials import Trial, TrialState
from advisor.tuning.distributions import described, holds, kept_distribution, kept_name, kept_value

PRUNED = optuna.trial.TrialState.PRUNED

# Attributes of a trial, as the dashboard shows them.
_NUMBER, _OUTCOME = "number", "outcome"

# Optuna's sampler ignores a failed trial, and learns from a pruned one that violates a constraint.
_OPTUNA_STATES = {
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.STOPPED: PRUNED,
    TrialState.INFEASIBLE: PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
    TrialState.INTERRUPTED: optuna.trial.TrialState.FAIL,
}


def running_trial(
    study: str, search_space: SearchSpace, hyperparameters: Mapping[str, HyperparameterValue]
) -> optuna.trial.FrozenTrial:
    """Return a running trial at the given values; raise StorageError where they are not searched."""
    for name, distribution in search_space.items():
        value = hyperparameters.get(name)
        if value is None or not holds(distribution, value):
            raise StorageError(
                f"A trial of the study {study} cannot have {name} = {value}: the study searches "
                f"{described(distribution)}."
            )
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING, **_kept(search_space, hyperparameters)
    )


def finished_trial(
    search_space: SearchSpace, trial: Trial, metric: str, value: float | None
) -> optuna.trial.FrozenTrial:
    """Return a trial that ended, with the curve of ``metric`` and its own number as an attribute."""
    kept = _kept(search_space, trial.plan.hyperparameters)
    kept["user_attrs"] |= {_NUMBER: trial.number, **outcome(trial.state, trial.reason)}
    state, value = ending(trial.state, value)
    return optuna.trial.create_trial(
        state=state,
        value=value,
        intermediate_values={point.step: point.metrics[metric] for point in trial.curve},
        constraints=constraints(trial.state),
        **kept,
    )


def ending(state: TrialState, value: float | None) -> tuple[optuna.trial.TrialState, float | None]:
    """Return how Optuna is told of a trial that ended.

    One that is complete but has no value, as where a target was not reached, is one that was pruned.
    """
    if state is TrialState.RUNNING:
        raise StorageError("A trial cannot end as running.")
    if state is not TrialState.COMPLETE:
        return _OPTUNA_STATES[state], None
    return (PRUNED, None) if value is None or math.isnan(value) else (_OPTUNA_STATES[state], value)


def constraints(state: TrialState) -> dict[str, float]:
    """Return the constraints of a trial that ended in ``state``; one above 0 is violated."""
    return {"feasible": 1.0} if state is TrialState.INFEASIBLE else {}


def outcome(state: TrialState, reason: str) -> dict[str, str]:
    """Return the attributes that say in words how a trial ended, which the dashboard shows."""
    return {_OUTCOME: state.value, "reason": reason}


def own_number(trial: optuna.trial.FrozenTrial) -> int:
    """Return the number that an added trial has of its own, else the one that the board gave it."""
    return int(trial.user_attrs.get(_NUMBER, trial.number))


def was_interrupted(trial: optuna.trial.FrozenTrial) -> bool:
    """Return whether a kept trial was told as interrupted, and not as failed."""
    return bool(trial.user_attrs.get(_OUTCOME) == TrialState.INTERRUPTED.value)


def _kept(search_space: SearchSpace, hyperparameters: Mapping[str, HyperparameterValue]) -> dict[str, Any]:
    """Return parameters, their distributions, and as attributes the hyperparameters that are not searched."""
    params: dict[str, HyperparameterValue] = {}
    distributions, others = {}, {}
    for name, value in hyperparameters.items():
        distribution = search_space.get(name)
        if distribution is not None and holds(distribution, value):
            params[kept_name(name, distribution)] = kept_value(distribution, value)
            distributions[kept_name(name, distribution)] = kept_distribution(distribution)
        else:
            others[name] = value
    return {"params": params, "distributions": distributions, "user_attrs": others}
