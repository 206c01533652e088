"""A StudyBoard that lives in this process alone and proposes at random."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from advisor.errors import StorageError
from advisor.records.search_space import (
    Categorical,
    Distribution,
    Float,
    HyperparameterValue,
    Int,
    Scale,
    SearchSpace,
)
from advisor.records.trials import Study, Trial, TrialState


@dataclass
class BoardTrial:
    """What the board was told about one trial."""

    hyperparameters: Mapping[str, HyperparameterValue]
    state: TrialState = TrialState.RUNNING
    value: float | None = None
    reason: str = ""
    intermediate: dict[int, float] = field(default_factory=dict)
    recorded_number: int | None = None

    def end(self, state: TrialState, value: float | None, reason: str) -> None:
        if state is TrialState.RUNNING:
            raise StorageError("A trial cannot end as running.")
        self.state, self.reason = state, reason
        self.value = value if state is TrialState.COMPLETE else None

    def ended_as(self, state: TrialState, value: float | None) -> bool:
        return _kept_state(self.state, self.value) is _kept_state(state, value)


@dataclass
class BoardStudy:
    """A study as the board holds it; tests look at ``trials`` and ``note``."""

    study: Study
    search_space: SearchSpace
    seed: int
    note: str = ""
    trials: list[BoardTrial] = field(default_factory=list)


def _kept_state(state: TrialState, value: float | None) -> TrialState:
    """Return one state for all that Optuna does not tell apart."""
    if state is TrialState.INTERRUPTED:
        return TrialState.FAILED
    valueless = state is TrialState.COMPLETE and (value is None or math.isnan(value))
    return TrialState.INFEASIBLE if valueless or state is TrialState.STOPPED else state


def _draw(random: Random, distribution: Distribution) -> HyperparameterValue:
    if isinstance(distribution, Categorical):
        return random.choice(distribution.choices)
    if isinstance(distribution, Int):
        return random.randint(distribution.low, distribution.high)
    low, high = distribution.low, distribution.high
    if distribution.scale is Scale.LOG:
        return min(high, max(low, math.exp(random.uniform(math.log(low), math.log(high)))))
    return random.uniform(low, high)


def _holds(distribution: Distribution, value: HyperparameterValue) -> bool:
    if isinstance(distribution, Categorical):
        return value in distribution.choices
    if not isinstance(value, int | float) or not distribution.low <= value <= distribution.high:
        return False
    return isinstance(distribution, Float) or float(value).is_integer()


def _searched(space: SearchSpace) -> dict[str, tuple[object, ...]]:
    """Return what must not change while a study grows; a default may."""
    return {
        name: d.choices
        if isinstance(d, Categorical)
        else (d.low, d.high, d.log, isinstance(d, Float) and d.log_one_minus)
        for name, d in space.items()
    }


@dataclass
class MemoryBoard:
    """Dictionaries that keep the promises of the port."""

    studies: dict[str, BoardStudy] = field(default_factory=dict)

    def open(self, study: Study, search_space: SearchSpace, seed: int) -> None:
        known = self.studies.setdefault(study.name, BoardStudy(study, dict(search_space), seed))
        old, new = _searched(known.search_space), _searched(search_space)
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        if changed:
            told = "; ".join(
                f"{name} was {known.search_space.get(name)} and is now {search_space.get(name)}"
                for name in changed
            )
            raise StorageError(f"The study {study.name!r} was begun with another search space: {told}.")

    def ask(self, study: str) -> tuple[int, Mapping[str, HyperparameterValue]]:
        board = self._opened(study)
        number = len(board.trials)
        ended = sum(trial.state not in (TrialState.RUNNING, TrialState.INTERRUPTED) for trial in board.trials)
        random = Random(f"{board.seed}/{ended}")
        values = {name: _draw(random, board.search_space[name]) for name in sorted(board.search_space)}
        board.trials.append(BoardTrial(values))
        return number, values

    def ask_at(self, study: str, hyperparameters: Mapping[str, HyperparameterValue]) -> int:
        board = self._opened(study)
        for name, distribution in board.search_space.items():
            if name not in hyperparameters or not _holds(distribution, hyperparameters[name]):
                raise StorageError(
                    f"A trial of {study!r} was asked for with {name}={hyperparameters.get(name)}; "
                    f"the study searches {distribution}."
                )
        board.trials.append(BoardTrial(dict(hyperparameters)))
        return len(board.trials) - 1

    def add(self, study: str, trial: Trial, value: float | None) -> None:
        board = self._opened(study)
        if trial.number in (
            place if other.recorded_number is None else other.recorded_number
            for place, other in enumerate(board.trials)
        ):
            return
        metric = board.study.target.metric
        curve = {point.step: point.metrics[metric] for point in trial.curve}
        added = BoardTrial(trial.plan.hyperparameters, intermediate=curve, recorded_number=trial.number)
        added.end(trial.state, value, trial.reason)
        board.trials.append(added)

    def report(self, study: str, number: int, step: int, value: float) -> None:
        trial = self._trial(study, number)
        if trial.state is not TrialState.RUNNING:
            raise _not_running(study, number)
        trial.intermediate[step] = value

    def tell(self, study: str, number: int, state: TrialState, value: float | None, reason: str) -> None:
        trial = self._trial(study, number)
        if trial.state is TrialState.RUNNING:
            trial.end(state, value, reason)
        elif not trial.ended_as(state, value):
            raise _not_running(study, number)

    def set_note(self, study: str, note: str) -> None:
        self._opened(study).note = note

    def _opened(self, study: str) -> BoardStudy:
        if study not in self.studies:
            raise StorageError(f"The study {study!r} has not been opened.")
        return self.studies[study]

    def _trial(self, study: str, number: int) -> BoardTrial:
        trials = self._opened(study).trials
        if number not in range(len(trials)):
            raise _not_running(study, number)
        return trials[number]


def _not_running(study: str, number: int) -> StorageError:
    return StorageError(f"Trial {number} of {study!r} is not running.")
