"""What the recorded trials of a study amount to."""

from collections import Counter
from collections.abc import Sequence

from advisor.analysis.curves import best_point
from advisor.analysis.tuning_health import health_checks
from advisor.records.search_space import SearchSpace
from advisor.records.trials import Study, Trial, TrialState
from advisor.records.tuning import BestTrial, TuningResult
from advisor.workflows.spending import spent


def tuning_result(study: Study, space: SearchSpace, trials: Sequence[Trial]) -> TuningResult:
    """Sum up a tune study; its best trial is the one with the best evaluation anywhere on its curve."""
    best = best_trial(study, trials)
    steps = study.settings["max_train_steps"]
    assert isinstance(steps, int)
    return TuningResult(
        study=study,
        search_space=space,
        trials=dict(Counter(trial.state.value for trial in trials)),
        best=best,
        health=health_checks(trials, best, space, steps),
        spent=spent([(study.batch_size, trials)]),
        next="advisor report" if best else "advisor recommend",
    )


def best_trial(study: Study, trials: Sequence[Trial]) -> BestTrial | None:
    """Return the trial that ended feasible with the best validation result, the earliest of equals."""
    best: BestTrial | None = None
    for trial in trials:
        point = best_point(trial.curve, study.target) if trial.state is TrialState.COMPLETE else None
        if point is None:
            continue
        value = point.metrics[study.target.metric]
        if best is None or study.target.better(value, best.value):
            best = BestTrial(trial.number, trial.plan.hyperparameters, value, point.step, trial.checkpoint)
    return best
