"""The best validation result within a fixed number of steps at one batch size.

Trials of one seed select the hyperparameters, fresh seeds measure what they reach.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.analysis.compass import Compass, Offsets, Rank, Score
from advisor.analysis.curves import best_point
from advisor.analysis.optimizers import prior
from advisor.errors import SessionError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import RecommendRequest
from advisor.records.search_space import HyperparameterValue
from advisor.records.target import Target
from advisor.records.trials import Study, StudyKind, Trial, TrialPlan, TrialPurpose, TrialState
from advisor.workflows.steps_to_target import FALLBACKS
from advisor.workflows.studies import described_study
from advisor.workflows.tools import SessionKeeper, Tools
from advisor.workflows.trial import TrialRunner
from advisor.workflows.tune import looks

Values = Mapping[str, HyperparameterValue]


@dataclass(frozen=True)
class Measured:
    """The fresh-seed trials of the selected hyperparameters."""

    best: Values
    at_edge: bool
    fresh: tuple[Trial, ...]

    @property
    def diverged(self) -> int:
        """How many of the fresh seeds diverged."""
        return sum(trial.state is TrialState.INFEASIBLE for trial in self.fresh)


class BudgetSearch:
    """The search in one study; trials that are recorded already are not run again."""

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        study: Study,
        request: RecommendRequest,
        max_steps: int,
    ) -> None:
        self._tools, self._request, self._max_steps = tools, request, max_steps
        self._study = tools.store.open_study(study)
        tools.board.open(self._study, prior(description.optimizer).space, request.seed)
        self._runner = TrialRunner(tools.store, keeper, self._study)
        self.used: dict[int, Trial] = {}

    def run(self, compass: Compass, seeds: int) -> Measured | None:
        """Search with ``compass`` and measure with ``seeds`` fresh seeds; None where every trial diverged."""
        scores = self._select(compass)
        feasible = [point for point in scores if scores[point].rank is not Rank.INFEASIBLE]
        left = sorted(feasible, key=lambda point: scores[point])
        measured: list[Measured] = []
        while left and len(measured) <= FALLBACKS:
            point, *left = left
            measured.append(self._measured(compass, point, seeds))
            if not measured[-1].diverged:
                break
            # Too large a learning rate is the usual reason, and the learning rate comes first in a point.
            left.sort(key=lambda other: (other[:1] >= point[:1], scores[other]))
        return min(measured, key=lambda one: one.diverged, default=None)

    def value(self, trial: Trial) -> float | None:
        """Return the best validation result anywhere on the trial's curve, None where it diverged."""
        best = None if trial.state is TrialState.INFEASIBLE else best_point(trial.curve, self._study.target)
        return best.metrics[self._study.target.metric] if best else None

    def say(self, sentence: str) -> None:
        """Tell what the study found, to who waits for it and on the study itself."""
        self._tools.progress.say(sentence)
        self._tools.store.set_note(self._study.name, f"**{sentence}**")
        self._tools.board.set_note(self._study.name, f"**{sentence}**")

    def _select(self, compass: Compass) -> Mapping[Offsets, Score]:
        scores: dict[Offsets, Score] = {}
        while len(scores) < self._request.trials_per_batch_size:
            point = compass.propose(scores)
            if point is None:
                break
            plan = TrialPlan(compass.values(point), self._request.seed, TrialPurpose.SELECT, self._max_steps)
            scores[point] = self._score(self._trial(plan))
        return scores

    def _measured(self, compass: Compass, point: Offsets, seeds: int) -> Measured:
        first = self._request.seed + 1
        plans = (
            TrialPlan(compass.values(point), seed, TrialPurpose.MEASURE, self._max_steps)
            for seed in range(first, first + seeds)
        )
        fresh = tuple(self._trial(plan) for plan in plans)
        return Measured(compass.values(point), compass.at_edge(point), fresh)

    def _score(self, trial: Trial) -> Score:
        """Rank by the best result; equal ones, as accuracies often are, by the training loss at the end."""
        value = self.value(trial)
        if value is None:
            return Score(Rank.INFEASIBLE, float(trial.plan.hyperparameters.get("learning_rate", 0.0)))
        loss = trial.curve[-1].training_loss
        return Score(Rank.REACHED, -value if self._study.target.maximize else value, loss or 0.0)

    def _trial(self, plan: TrialPlan) -> Trial:
        """Return a recorded trial that answers ``plan``, or run it; a session that failed gets one more try.

        Raises :class:`~advisor.errors.SessionError` where the second try fails too.
        """
        trial = next(self._recorded(plan), None) or self._run(plan)
        if trial.state is TrialState.FAILED:
            trial = self._run(plan)
        self._tools.board.add(self._study.name, trial, self.value(trial))
        if trial.state is TrialState.FAILED:
            raise SessionError(
                f"Training at batch size {self._study.batch_size:,} failed twice. {trial.reason}"
            )
        self.used[trial.number] = trial
        return trial

    def _recorded(self, plan: TrialPlan) -> Iterator[Trial]:
        ended = (TrialState.COMPLETE, TrialState.INFEASIBLE)
        trials = self._tools.store.trials(self._study.name)
        return (trial for trial in trials if trial.plan == plan and trial.state in ended)

    def _run(self, plan: TrialPlan) -> Trial:
        values = ", ".join(
            f"{name.replace('_', ' ')} {value:.3g}" for name, value in plan.hyperparameters.items()
        )
        why = "fresh seed" if plan.purpose is TrialPurpose.MEASURE else "trial"
        self._tools.progress.say(
            f"Batch size {self._study.batch_size:,}: {why} of {plan.max_steps:,} steps with {values}."
        )
        return self._runner.run(None, plan, looks(plan.max_steps), lambda curve: None)


def recorded_trials(tools: Tools, study: Study) -> Sequence[Trial]:
    """Return the trials recorded of ``study``, none where it has not been begun."""
    names = [other.name for other in tools.store.studies(study.workload)]
    return tools.store.trials(study.name) if study.name in names else ()


def budget_study(
    description: WorkloadDescription,
    kind: StudyKind,
    question: str,
    batch_size: int,
    objective: Target,
    settings: Mapping[str, object],
    request: RecommendRequest,
) -> Study:
    """Return the study of ``question`` at ``batch_size``, not recorded yet; another one is another study."""
    study = described_study(description, kind, batch_size, objective, settings, request.provenance)
    stem, _, size = study.name.rpartition("/")
    return replace(study, name=f"{stem}/{question}/{size}")
