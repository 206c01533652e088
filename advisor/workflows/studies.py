"""What the recorded trials of a study amount to."""

from collections import Counter
from collections.abc import Mapping, Sequence

from advisor.analysis.curves import best_point
from advisor.analysis.tuning_health import health_checks
from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import Provenance
from advisor.records.search_space import SearchSpace
from advisor.records.target import Target
from advisor.records.trials import Study, StudyKind, Trial, TrialState, study_name
from advisor.records.tuning import BestTrial, TuningResult
from advisor.workflows.spending import spent
from advisor.workflows.tools import Tools


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


def open_study(
    tools: Tools,
    description: WorkloadDescription,
    kind: StudyKind,
    batch_size: int,
    settings: Mapping[str, object],
    provenance: Provenance,
) -> Study:
    """Return the recorded study of that kind at ``batch_size``, recording it where there is none."""
    target = required_target(description)
    return tools.store.open_study(
        described_study(description, kind, batch_size, target, settings, provenance)
    )


def described_study(
    description: WorkloadDescription,
    kind: StudyKind,
    batch_size: int,
    target: Target,
    settings: Mapping[str, object],
    provenance: Provenance,
) -> Study:
    """Return the study of that kind at ``batch_size``, not recorded yet."""
    training = description.fingerprint.training
    return Study(
        name=study_name(description.name, training, kind, batch_size),
        kind=kind,
        workload=description.name,
        fingerprint=training,
        batch_size=batch_size,
        target=target,
        configuration=description.configuration,
        settings=settings,
        command=provenance.command,
        revision=provenance.revision,
        uncommitted_diff=provenance.uncommitted_diff,
    )


def required_target(description: WorkloadDescription) -> Target:
    """Return the workload's target; without one there is nothing to count steps to."""
    if description.target is None:
        raise WorkloadError(
            f"Workload {description.name!r} has no target. Give it one, such as "
            'target=Target("loss", at_most=0.1); its metrics are ' + ", ".join(description.metrics) + "."
        )
    return description.target


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
