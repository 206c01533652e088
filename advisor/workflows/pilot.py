"""``advisor recommend --pilot``: a target for a user who has none, from a short tuned run."""

import math
from collections.abc import Iterator
from dataclasses import replace

from advisor.analysis.curves import best_point, crossing
from advisor.analysis.proposal import LATE_POINTS, late_value, proposed_target
from advisor.errors import InconclusiveError
from advisor.records.pilot import Pilot, PilotSeed
from advisor.records.recommendation import SpendingPlan
from advisor.records.requests import RecommendRequest
from advisor.records.target import Target
from advisor.records.trials import Study, StudyKind, Trial
from advisor.workflows.budget_search import BudgetSearch, Measured, budget_study, recorded_trials
from advisor.workflows.measure import batch_sizes_that_ran, ensure_measured
from advisor.workflows.objective import objective
from advisor.workflows.retuning import compass_at, tuned_names
from advisor.workflows.spending import EXPECTED_TRIALS, expected_trainings, planned, spending_sentence, spent
from advisor.workflows.steps_to_target import FALLBACKS
from advisor.workflows.tools import SessionKeeper, Tools, describe

EPOCHS = 5
"""Length of a training where the user sets no limit of examples."""
LEAST_STEPS = 100
"""Fewer steps than that show too little of the training, however few examples there are."""
LEAST_SEEDS = 3
"""Against a lucky one."""


def plan(tools: Tools, request: RecommendRequest, metric: str | None = None) -> SpendingPlan:
    """Measure what is missing and return what :func:`pilot` may use; nothing is trained."""
    with SessionKeeper(tools.sessions) as keeper:
        return _Piloting(tools, keeper, request, metric).spending


def pilot(tools: Tools, request: RecommendRequest, metric: str | None = None) -> Pilot:
    """Propose a target on ``metric`` (accuracy where the model reports it, else loss).

    At a middle batch size the hyperparameters of the request are tuned for a short training, then fresh
    seeds train as long; the target is what all of them reach well before the end. Raises
    :class:`~advisor.errors.InconclusiveError` where training diverges or gets no further than the untrained
    model.
    """
    with SessionKeeper(tools.sessions) as keeper:
        return _Piloting(tools, keeper, request, metric).run()


class _Piloting:
    """One proposal."""

    def __init__(
        self, tools: Tools, keeper: SessionKeeper, request: RecommendRequest, metric: str | None
    ) -> None:
        self._tools, self._keeper, self._request = tools, keeper, request
        self._description = describe(tools, keeper)
        self._objective = objective(self._description, metric, ("accuracy", "loss"))
        self._tuned = tuned_names(self._description, request.tune)
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        self._throughput = ensure_measured(tools, keeper, self._description, measure)
        sizes = batch_sizes_that_ran(self._throughput, request.batch_sizes, self._description)
        self._batch_size = sizes[len(sizes) // 2]
        self._seeds = max(LEAST_SEEDS, request.seeds or 0)

    @property
    def spending(self) -> SpendingPlan:
        """What the pilot may use, and what is expected."""
        request, sizes, examples = self._request, [self._batch_size], self._batch_size * self._max_steps
        recorded = len(recorded_trials(self._tools, self._study))
        trials = min(EXPECTED_TRIALS, request.trials_per_batch_size)
        expected = expected_trainings(
            [] if recorded else sizes,
            trials + self._seeds,
            examples,
            self._throughput,
            request.prices,
            f"assuming {trials} trials and {self._seeds} fresh seeds",
        )
        most = request.trials_per_batch_size + (1 + FALLBACKS) * self._seeds
        return planned(sizes, most, examples, self._throughput, request.prices, recorded, expected)

    def run(self) -> Pilot:
        """Tune, measure with fresh seeds, and propose."""
        self._tools.progress.say(spending_sentence(self.spending))
        search = BudgetSearch(
            self._tools, self._keeper, self._description, self._study, self._request, self._max_steps
        )
        compass = compass_at(self._batch_size, self._tuned, self._description, {})
        measured = search.run(compass, self._seeds)
        if measured is None or measured.diverged:
            raise InconclusiveError(self._diverged(measured))
        target = proposed_target([trial.curve for trial in measured.fresh], self._objective)
        if target is None:
            raise InconclusiveError(self._no_better(measured))
        found = self._pilot(target, measured)
        search.say(f"Proposed target: {target}, which took {found.steps:,.0f} steps.")
        return found

    @property
    def _max_steps(self) -> int:
        asked = self._request.max_examples_per_trial
        if asked:
            return max(1, asked // self._batch_size)
        epochs = math.ceil(EPOCHS * self._description.training_examples / self._batch_size)
        return max(LEAST_STEPS, epochs)

    @property
    def _study(self) -> Study:
        """The study of this length and metric."""
        return budget_study(
            self._description,
            StudyKind.PILOT,
            f"steps={self._max_steps}/{self._objective.metric}",
            self._batch_size,
            self._objective,
            {"max_train_steps": self._max_steps},
            self._request,
        )

    def _pilot(self, target: Target, measured: Measured) -> Pilot:
        trials = recorded_trials(self._tools, self._study)
        return Pilot(
            workload=self._description.name,
            configuration=self._description.configuration,
            target=target,
            batch_size=self._batch_size,
            max_steps=self._max_steps,
            epochs=self._max_steps * self._batch_size / self._description.training_examples,
            best=measured.best,
            seeds=tuple(self._seed(trial, target) for trial in measured.fresh),
            initial_value=self._description.initial_metrics[target.metric],
            rule=(
                f"the worst of {len(measured.fresh)} fresh seeds at two thirds of the training (the median "
                f"of the last {LATE_POINTS} evaluations up to there), rounded so that every seed reaches it "
                "in the first four fifths: no lucky seed sets it, and there is room to see slower trainings "
                "reach it"
            ),
            caveats=tuple(self._caveats(measured)),
            spent=spent([(self._batch_size, trials)]),
            next=f"advisor recommend {self._request.workload_argument}".strip(),
        )

    def _seed(self, trial: Trial, target: Target) -> PilotSeed:
        steps, best = crossing(trial.curve, target).steps, best_point(trial.curve, target)
        assert steps is not None and best is not None  # The target is one that every seed reaches.
        return PilotSeed(
            seed=trial.plan.seed,
            late_value=late_value(trial.curve, target),
            best_value=best.metrics[target.metric],
            steps=steps,
            time_s=trial.train_s * steps / trial.steps,
        )

    def _caveats(self, measured: Measured) -> Iterator[str]:
        metric = self._objective.metric
        yield (
            f"The untrained model has validation {metric} "
            f"{self._description.initial_metrics[metric]:.4g}. What a constant predictor has (the commonest "
            "class, or the mean) is not known here: make sure that the target asks for more."
        )
        yield (
            "It is a target of a short training. Choose a stricter one if the model is to be trained for "
            "longer: the best batch size depends on it."
        )
        if measured.at_edge:
            yield "The best hyperparameters lie at the edge of their range: better ones may lie beyond it."
        if self._description.target is not None:
            yield f"The workload has a target already: {self._description.target}."

    def _diverged(self, measured: Measured | None) -> str:
        advice = "Look at the data and the loss, or give the learning rate a lower range in a study file."
        if measured is None:
            return (
                f"No target is proposed: every training at batch size {self._batch_size:,} diverged. {advice}"
            )
        return (
            f"No target is proposed: {measured.diverged} of {len(measured.fresh)} fresh seeds at batch size "
            f"{self._batch_size:,} diverged with the best hyperparameters that were found. {advice}"
        )

    def _no_better(self, measured: Measured) -> str:
        metric = self._objective.metric
        late = ", ".join(f"{late_value(trial.curve, self._objective):.4g}" for trial in measured.fresh)
        return (
            f"No target is proposed: the untrained model has validation {metric} "
            f"{self._description.initial_metrics[metric]:.4g}, and after two thirds of {self._max_steps:,} "
            f"steps the seeds have {late}. Name another metric with --metric, or let trainings run longer "
            "with --max-examples-per-trial."
        )
