"""Steps to target at one batch size: trials select the hyperparameters, fresh seeds measure the steps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.analysis.compass import Compass, Offsets, Rank, Score, best_offsets, progress
from advisor.analysis.curves import crossing, evaluation_steps
from advisor.analysis.design import LEAST_LIMIT
from advisor.analysis.fresh_seeds import steps_interval
from advisor.analysis.optimizers import prior
from advisor.errors import SessionError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import RecommendRequest
from advisor.records.scaling import BatchSizeResult, Crossing, Observation
from advisor.records.trials import (
    CurvePoint,
    StudyKind,
    Trial,
    TrialPlan,
    TrialPurpose,
    TrialState,
)
from advisor.workflows.pace import Pace, Values
from advisor.workflows.spending import Allowance
from advisor.workflows.studies import open_study, required_target
from advisor.workflows.tools import SessionKeeper, Tools
from advisor.workflows.trial import Ending, TrialRunner

LOOK_RATIO = 1.05
"""Each evaluation comes this much later than the last, so every batch size has equal chances to be caught."""
FALLBACKS = 3
"""How often other hyperparameters are measured where most fresh seeds of the selected ones fail."""
FRESH_LIMIT = 4.0
"""A fresh seed that takes so many times the steps of the trial that selected has failed: seeds seldom differ
by more than a factor of 2."""

FEWEST_SHORT_TRIALS = 2
"""A single short trial compares nothing."""
FIRST_LIMITS = (1 / 32, 1 / 8)
"""Shares of the limit for first trials at a learning rate from nowhere: one far too small wastes the most."""

LOOKS_THAT_TELL = 4
"""The last median of three and its two neighbours, and one before: earlier ones were looked at before."""
CUT = "the allowance is used up"


@dataclass(frozen=True)
class Known:
    """What other batch sizes tell of a search: where it starts, its limit of steps, the pace to expect."""

    compass: Compass
    step_limit: int
    pace: Pace | None


@dataclass
class Selection:
    """The trials that select so far, and the best of those that arrived."""

    scores: dict[Offsets, Score] = field(default_factory=dict)
    best: Pace | None = None


@dataclass(frozen=True)
class Measured:
    """Fresh-seed runs of one point of the search."""

    point: Offsets
    values: Values
    crossings: tuple[Crossing, ...]

    @property
    def failures(self) -> int:
        """How many runs did not reach the target."""
        return sum(found.censored for found in self.crossings)

    @property
    def merit(self) -> tuple[float, float]:
        """The share of failures first, then the mean of the steps; smaller is better."""
        interval = steps_interval(self.crossings, 0.0)
        return self.failures / len(self.crossings), interval.estimate if interval else 0.0


class BatchSizeSearch:
    """The search at one batch size; trials that are recorded already are not run again."""

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        request: RecommendRequest,
        batch_size: int,
        known: Known,
        allowance: Allowance,
    ) -> None:
        self._tools, self._request, self._allowance = tools, request, allowance
        self._start, self._limit, self._pace_elsewhere = known.compass, known.step_limit, known.pace
        self._target = required_target(description)
        self._study = open_study(
            tools,
            description,
            StudyKind.STEPS_TO_TARGET,
            batch_size,
            {"look_ratio": LOOK_RATIO},
            request.provenance,
        )
        # The usual ranges and not the user's: the search is directed, so those may change between runs.
        tools.board.open(self._study, prior(description.optimizer).space, request.seed)
        self._runner = TrialRunner(tools.store, keeper, self._study)
        self._recorded = list(tools.store.trials(self._study.name))
        self._used: dict[int, Trial] = {}
        self._measured: dict[Offsets, Measured] = {}
        self._chosen: Measured | None = None

    def run(self, seeds: int) -> BatchSizeResult:
        """Search, then measure with ``seeds`` fresh seeds what the search selects.

        Called again with more seeds it goes on from where it stood. Raises
        :class:`~advisor.workflows.spending.AllowanceUsedUpError` where a training had to be cut.
        """
        compass, scores = self._select()
        left = _ranked(scores)
        if self._chosen is not None:
            untried = [point for point in left if point not in self._measured]
            left = [self._chosen.point, *_gentler_first(untried, self._chosen.point)]
        while left:
            point, *left = left
            crossings = self._measure(compass.values(point), seeds, scores[point])
            self._measured[point] = Measured(point, compass.values(point), crossings)
            if 2 * self._measured[point].failures <= seeds or len(self._measured) > FALLBACKS:
                break
            left = _gentler_first(left, point)
        self._chosen = min(self._measured.values(), key=lambda one: one.merit, default=None)
        return self._result(compass, scores)

    @property
    def examples(self) -> int:
        """How many examples the trials used here took, now or in an earlier run."""
        return self._study.batch_size * sum(trial.steps for trial in self._used.values())

    def pace(self, other: int) -> Pace | None:
        """Return the pace to expect at batch size ``other``, None where no fresh seed arrived here."""
        batch_size = self._study.batch_size
        for trial in self._used.values():
            found = crossing(trial.curve, self._target).steps
            is_chosen = self._chosen is not None and trial.plan.hyperparameters == self._chosen.values
            if is_chosen and trial.plan.purpose is TrialPurpose.MEASURE and found is not None:
                return Pace(trial.curve, found).elsewhere(batch_size, other)
        return None

    def _select(self) -> tuple[Compass, Mapping[Offsets, Score]]:
        """Return the scores of the trials, and the search that placed them.

        Where nothing is known of the learning rate yet, short trials far apart come first.
        """
        compass, so_far = self._start, Selection()
        most, most_short = self._request.trials_per_batch_size, self._most_short_trials
        for share in FIRST_LIMITS:
            limit = max(LEAST_LIMIT, math.ceil(share * self._limit))
            if most_short < FEWEST_SHORT_TRIALS or limit >= self._limit:
                break
            self._bracket(replace(compass, strides=compass.strides[:1]), so_far, limit, most_short)
            if so_far.best:
                break
            most, most_short = most - len(so_far.scores), most_short - len(so_far.scores)
            compass, so_far = compass.moved(best_offsets(so_far.scores)), Selection()
        self._bracket(compass, so_far, self._limit, most)
        return compass, so_far.scores

    @property
    def _most_short_trials(self) -> int:
        """How many trials may be short: none where a learning rate is known from elsewhere, or is fixed."""
        is_known = self._start.usual_progress is not None or not self._start.axes
        return 0 if is_known else self._request.trials_per_batch_size // 3

    def _bracket(self, compass: Compass, so_far: Selection, limit: int, most: int) -> None:
        """Go on until the best is bracketed or ``most`` trials are known, each of at most ``limit`` steps."""
        scores = so_far.scores
        while len(scores) < most and (point := compass.propose(scores)) is not None:
            best = so_far.best
            max_steps = min(limit, best.curve[-1].step) if best else limit
            paces = [pace for pace in (best, self._pace_elsewhere) if pace]
            plan = TrialPlan(compass.values(point), self._request.seed, TrialPurpose.SELECT, max_steps)
            trial = self._trial(plan, paces)
            found = crossing(trial.curve, self._target)
            scores[point] = self._score(trial, found)
            if found.steps is not None and (best is None or found.steps < best.steps):
                so_far.best = Pace(trial.curve, found.steps, rate=progress(trial.plan.hyperparameters, 1))

    def _measure(self, values: Values, seeds: int, score: Score) -> tuple[Crossing, ...]:
        """Return what fresh seeds need, until most of them failed."""
        limit = self._limit
        if score.rank is Rank.REACHED:
            limit = min(limit, max(LEAST_LIMIT, math.ceil(FRESH_LIMIT * score.value)))
        crossings: list[Crossing] = []
        for seed in range(self._request.seed + 1, self._request.seed + 1 + seeds):
            trial = self._trial(TrialPlan(values, seed, TrialPurpose.MEASURE, limit))
            crossings.append(self._fresh(trial, limit))
            if 2 * sum(found.censored for found in crossings) > seeds:
                break
        return tuple(crossings)

    def _fresh(self, trial: Trial, limit: int) -> Crossing:
        """Return the crossing; a diverged run would have needed more than any number of steps."""
        found = crossing(trial.curve, self._target)
        return found if found.steps is not None else Crossing(None, float(limit), None)

    def _score(self, trial: Trial, found: Crossing) -> Score:
        if found.steps is not None:
            return Score(Rank.REACHED, found.steps, steps=found.steps)
        if trial.state is TrialState.INFEASIBLE:
            return Score(Rank.INFEASIBLE, float(trial.plan.hyperparameters.get("learning_rate", 0.0)))
        needed = float(trial.steps)
        if trial.state is TrialState.STOPPED and self._pace_elsewhere:
            needed = max(needed, self._pace_elsewhere.steps_when_behind)
        metric, last = self._target.metric, trial.curve[-1]
        missing = (abs(point.metrics[metric] - self._target.value) for point in trial.curve)
        loss = last.training_loss
        return Score(
            Rank.TOO_SLOW,
            min(filter(math.isfinite, missing), default=math.inf),
            loss if loss is not None and math.isfinite(loss) else math.inf,
            needed,
        )

    def _trial(self, plan: TrialPlan, paces: Sequence[Pace] = ()) -> Trial:
        """Return a recorded trial that answers ``plan``, or run it; a session that failed gets one more try.

        It is stopped where it is far behind any of ``paces``. Raises :class:`~advisor.errors.SessionError`
        where the second try fails too.
        """
        known = next((trial for trial in self._recorded if self._answers(trial, plan, paces)), None)
        if known and known.number not in self._used:
            self._show(known)  # A run that was killed may have recorded it without showing it.
        trial = known or self._run(plan, paces)
        if trial.state is TrialState.FAILED:
            trial = self._run(plan, paces)
        if trial.state is TrialState.FAILED:
            raise SessionError(
                f"Training at batch size {self._study.batch_size:,} failed twice. {trial.reason}"
            )
        self._used[trial.number] = trial
        return trial

    def _answers(self, trial: Trial, plan: TrialPlan, paces: Sequence[Pace]) -> bool:
        """Return whether a recorded trial had the same values and seed, and ran far enough."""
        same = (trial.plan.hyperparameters, trial.plan.seed) == (plan.hyperparameters, plan.seed)
        return same and trial.plan.purpose is plan.purpose and self._far_enough(trial, plan, paces)

    def _far_enough(self, trial: Trial, plan: TrialPlan, paces: Sequence[Pace]) -> bool:
        if trial.state is TrialState.INFEASIBLE:
            return True
        if trial.state is TrialState.STOPPED:
            return self._is_far_behind(trial.curve, plan, paces)
        reached = crossing(trial.curve, self._target).steps is not None
        return trial.state is TrialState.COMPLETE and (reached or trial.steps >= plan.max_steps)

    def _run(self, plan: TrialPlan, paces: Sequence[Pace]) -> Trial:
        self._tell(plan)
        looks = evaluation_steps(plan.max_steps, LOOK_RATIO)
        self._allowance.check()
        trial = self._runner.run(None, plan, looks, lambda curve: self._watch(curve, plan, paces))
        self._recorded.append(trial)
        self._allowance.add(self._study.batch_size, trial)
        self._show(trial)
        if trial.reason == CUT:
            self._allowance.check()
        return trial

    def _show(self, trial: Trial) -> None:
        self._tools.board.add(self._study.name, trial, crossing(trial.curve, self._target).steps)

    def _watch(self, curve: Sequence[CurvePoint], plan: TrialPlan, paces: Sequence[Pace]) -> Ending | None:
        if crossing(curve[-LOOKS_THAT_TELL:], self._target).steps is not None:
            found = crossing(curve, self._target)
            return Ending(TrialState.COMPLETE, f"reached the target in {found.steps:,.1f} steps")
        if self._is_far_behind(curve, plan, paces):
            return Ending(TrialState.STOPPED, f"far behind the best trials at step {curve[-1].step:,}")
        is_within = self._allowance.covers(self._study.batch_size, curve)
        return None if is_within else Ending(TrialState.STOPPED, CUT)

    def _is_far_behind(self, curve: Sequence[CurvePoint], plan: TrialPlan, paces: Sequence[Pace]) -> bool:
        return any(pace.leaves_behind(curve, plan.hyperparameters, self._target) for pace in paces)

    def _tell(self, plan: TrialPlan) -> None:
        values = ", ".join(
            f"{name.replace('_', ' ')} {value:.3g}" for name, value in plan.hyperparameters.items()
        )
        why = "fresh seed" if plan.purpose is TrialPurpose.MEASURE else "trial"
        self._tools.progress.say(f"Batch size {self._study.batch_size:,}: {why} with {values}.")

    def _result(self, compass: Compass, scores: Mapping[Offsets, Score]) -> BatchSizeResult:
        chosen, batch_size = self._chosen, self._study.batch_size
        crossings = chosen.crossings if chosen else (Crossing(None, self._not_within(scores), None),)
        slack = compass.log_slack(chosen.point, scores) if chosen else 0.0
        interval = steps_interval(crossings, slack)
        return BatchSizeResult(
            batch_size=batch_size,
            best=chosen.values if chosen else None,
            at_edge=chosen is not None and compass.at_edge(chosen.point),
            trials=len(self._used),
            infeasible=sum(trial.state is TrialState.INFEASIBLE for trial in self._used.values()),
            observations=tuple(Observation(batch_size, found) for found in crossings),
            steps=interval.estimate if interval else None,
            steps_interval=interval,
            censored=interval is None,
            log_slack=slack,
        )

    def _not_within(self, scores: Mapping[Offsets, Score]) -> float:
        """Return the steps that the best trial would have needed more than, where none arrived."""
        needed = [score.steps for score in scores.values() if score.rank is Rank.TOO_SLOW]
        return min(float(self._limit), max(needed, default=math.inf))


def _ranked(scores: Mapping[Offsets, Score]) -> list[Offsets]:
    """Return the points that did not diverge, the best first; none where none reached the target."""
    points = sorted(scores, key=lambda point: scores[point])
    if not any(scores[point].rank is Rank.REACHED for point in points):
        return []
    return [point for point in points if scores[point].rank is not Rank.INFEASIBLE]


def _gentler_first(points: Sequence[Offsets], than: Offsets) -> list[Offsets]:
    """Return ``points`` with the next smaller learning rate first.

    Where a fresh seed fails, too large a learning rate is the usual reason. The next smaller one may have
    been stopped for being slower than that one, and not for being unable to reach the target.
    """
    return sorted(points, key=lambda point: (point[:1] >= than[:1], math.dist(point, than)))
