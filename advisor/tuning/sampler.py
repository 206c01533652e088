"""The tree-structured Parzen estimator, seeded anew for every trial."""

from random import Random
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

from advisor.tuning.trials import was_interrupted


class SeededTPESampler(BaseSampler):
    """Proposes from the study's seed and the trials that ended, and from nothing else.

    So a study that was interrupted and resumed proposes what it would have proposed uninterrupted; one
    sampler that runs on would not. An interrupted trial uses up a number and nothing more: what it was to
    try is proposed again. The model guides from the first trial on: whoever wants exploration hands over
    the points.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._current: tuple[int, TPESampler] | None = None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled together."""
        return self._of(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values for the parameters that are sampled together."""
        return self._of(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value for a parameter that no earlier trial has."""
        return self._of(study, trial).sample_independent(study, trial, param_name, param_distribution)

    def _of(self, study: Study, trial: FrozenTrial) -> TPESampler:
        if self._current is None or self._current[0] != trial.number:
            seed = Random(f"{self._seed}/{_ended(study)}").getrandbits(32)
            self._current = (trial.number, TPESampler(seed=seed, n_startup_trials=0))
        return self._current[1]


def _ended(study: Study) -> int:
    """Return how many trials ended by themselves; one that failed counts, so that others are tried."""
    trials = study.get_trials(deepcopy=False)
    return sum(trial.state.is_finished() and not was_interrupted(trial) for trial in trials)
