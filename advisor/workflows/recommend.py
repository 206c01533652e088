"""``advisor recommend``: from measured time per step and tuned steps to target to one batch size."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.analysis.choice import recommend_batch_size
from advisor.analysis.design import from_the_middle, next_batch_size, step_limit
from advisor.analysis.scaling import fit_scaling
from advisor.errors import InconclusiveError, SessionError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import MeasurementOutcome, Throughput
from advisor.records.recommendation import Advice, SpendingPlan
from advisor.records.requests import RecommendRequest
from advisor.records.scaling import BatchSizeResult, ScalingFit, SearchUncertainty
from advisor.records.target import Target
from advisor.records.trials import Study, StudyKind, Trial, TrialState, study_name
from advisor.workflows.measure import asked_batch_sizes, ensure_measured
from advisor.workflows.retuning import compass_at, tuned_names
from advisor.workflows.spending import planned, spending_sentence, spent, trial_s
from advisor.workflows.steps_to_target import FALLBACKS, BatchSizeSearch
from advisor.workflows.studies import required_target
from advisor.workflows.tools import SessionKeeper, Tools, describe

MOST_BATCH_SIZES = 7
"""Enough to show both regimes and their bend; more narrow the answer little (design of the search)."""
EPOCHS_PER_TRIAL = 100
"""How long the first trials may look for the target where the user sets no limit; later ones know better."""
BEYOND_SATURATION = 4
"""The curve is explored up to this multiple of the saturation batch size, which bounds the advice itself."""
UNMEASURED = (MeasurementOutcome.OUT_OF_MEMORY, MeasurementOutcome.FAILED, MeasurementOutcome.TIMEOUT)
HOPELESS_BATCH_SIZES = 2
"""Where none of so many batch sizes reached the target, no other is tried."""
BEND_DRAWS = 20
"""The bend is wanted without its interval while the search goes on."""
DRAWS = 400
Note = Callable[[BatchSizeResult, Target], str]
"""Says in words what the search at one batch size found, for the dashboard."""


def plan(tools: Tools, request: RecommendRequest) -> SpendingPlan:
    """Measure what is missing and return what :func:`recommend` may use; nothing is trained to a target."""
    with SessionKeeper(tools.sessions) as keeper:
        return _Recommending(tools, keeper, request).spending


def recommend(tools: Tools, request: RecommendRequest, note: Note) -> Advice:
    """Find the batch size to use.

    Raises :class:`~advisor.errors.WorkloadError` where the workload has no target or already meets it, and
    :class:`~advisor.errors.InconclusiveError` where no batch size reached the target.
    """
    with SessionKeeper(tools.sessions) as keeper:
        return _Recommending(tools, keeper, request).run(note)


class _Recommending:
    """One run of the whole search."""

    def __init__(self, tools: Tools, keeper: SessionKeeper, request: RecommendRequest) -> None:
        self._tools, self._keeper, self._request = tools, keeper, request
        self._description = describe(tools, keeper)
        _check_target(self._description)
        self._tuned = tuned_names(self._description, request.tune)
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        self._throughput = ensure_measured(tools, keeper, self._description, measure)
        self._candidates = _candidates(self._throughput, request, self._description)
        self._results: dict[int, BatchSizeResult] = {}
        self._broken: dict[int, SessionError] = {}

    @property
    def spending(self) -> SpendingPlan:
        """What the search may use, whichever batch sizes it comes to look at."""

        def cost_s(batch_size: int) -> float:
            return trial_s(batch_size, self._max_examples, self._throughput)

        dearest = sorted(self._candidates, key=cost_s)[-self._most_batch_sizes :]
        trainings = self._request.trials_per_batch_size + (1 + FALLBACKS) * self._request.seeds
        recorded = sum(len(self._tools.store.trials(study.name)) for study in self._studies())
        return planned(
            sorted(dearest),
            trainings,
            self._max_examples,
            self._throughput,
            self._request.prices,
            recorded,
        )

    def run(self, note: Note) -> Advice:
        """Look at batch sizes from the middle outwards, then narrow the critical one down."""
        self._tools.progress.say(spending_sentence(self.spending))
        while (batch_size := self._next()) is not None:
            try:
                result = self._look_at(batch_size)
            except SessionError as error:
                self._leave_out(batch_size, error)
                continue
            self._results[batch_size] = result
            self._say_found(result, note)
        return self._advice()

    def _leave_out(self, batch_size: int, error: SessionError) -> None:
        """Go on without a batch size that cannot be trained, unless there is no other."""
        self._broken[batch_size] = error
        self._candidates = [other for other in self._candidates if other != batch_size]
        self._tools.progress.say(f"{error} Going on without batch size {batch_size:,}.")
        if len(self._broken) > len(self._results) + 1 or not self._candidates:
            raise error

    def _look_at(self, batch_size: int) -> BatchSizeResult:
        limit = step_limit(self._steps, batch_size, self._max_examples)
        search = BatchSizeSearch(
            self._tools, self._keeper, self._description, self._request, batch_size, limit
        )
        return search.run(compass_at(batch_size, self._tuned, self._description, self._results))

    def _next(self) -> int | None:
        steps = self._steps
        if len(steps) >= HOPELESS_BATCH_SIZES and not any(steps.values()):
            return None
        if self._request.batch_sizes.listed:
            return from_the_middle(self._candidates, steps)
        return next_batch_size(steps, self._candidates, self._bend, MOST_BATCH_SIZES)

    def _bend(self) -> float | None:
        fit = self._fit(BEND_DRAWS)
        return fit.half_efficiency_batch_size.estimate if fit.half_efficiency_batch_size else None

    def _fit(self, draws: int) -> ScalingFit:
        results = self._results.values()
        return fit_scaling(
            observations=[observation for result in results for observation in result.observations],
            uncertainty=[SearchUncertainty(result.batch_size, result.log_slack) for result in results],
            tried=sorted(self._results),
            overhead=self._request.overhead,
            seed=self._request.seed,
            draws=draws,
        )

    @property
    def _most_batch_sizes(self) -> int:
        listed = self._request.batch_sizes.listed
        return len(self._candidates) if listed else min(MOST_BATCH_SIZES, len(self._candidates))

    @property
    def _steps(self) -> Mapping[int, float | None]:
        return {result.batch_size: result.steps for result in self._results.values()}

    @property
    def _max_examples(self) -> int:
        asked = self._request.max_examples_per_trial
        return asked or EPOCHS_PER_TRIAL * self._description.training_examples

    def _studies(self) -> Sequence[Study]:
        return [
            study
            for study in self._tools.store.studies(self._description.name)
            if study.kind is StudyKind.STEPS_TO_TARGET
            and study.fingerprint == self._description.fingerprint.training
        ]

    def _say_found(self, result: BatchSizeResult, note: Note) -> None:
        found = f"{result.steps:,.1f} steps to target" if result.steps else "the target was not reached"
        self._tools.progress.say(f"Batch size {result.batch_size:,}: {found}.")
        self._tools.progress.advance("batch sizes", len(self._results), self._most_batch_sizes)
        name = study_name(
            self._description.name,
            self._description.fingerprint.training,
            StudyKind.STEPS_TO_TARGET,
            result.batch_size,
        )
        text = note(result, required_target(self._description))
        self._tools.store.set_note(name, text)
        self._tools.board.set_note(name, text)

    def _left_out(self) -> Iterator[str]:
        """Say which batch sizes that were asked for are missing from the evidence, and why."""
        if self._broken:
            sizes = ", ".join(f"{batch_size:,}" for batch_size in self._broken)
            yield f"Batch size {sizes} could not be trained and was left out."
        asked = asked_batch_sizes(self._request.batch_sizes, self._description.training_examples)
        rows = {row.batch_size: row for row in self._throughput.table if row.batch_size in asked}
        for row in rows.values():
            if row.outcome in UNMEASURED:
                yield f"Batch size {row.batch_size:,} could not be measured. {row.detail.splitlines()[0]}"
        untried = [
            f"{batch_size:,}" for batch_size in self._request.batch_sizes.listed if batch_size not in rows
        ]
        if untried:
            yield f"Batch size {', '.join(untried)} was not tried, since a smaller one ran out of memory."

    def _advice(self) -> Advice:
        results = tuple(self._results[batch_size] for batch_size in sorted(self._results))
        studies = [(study.batch_size, self._tools.store.trials(study.name)) for study in self._studies()]
        if not any(result.steps for result in results):
            raise InconclusiveError(_nothing_reached(self._description, studies))
        fit = self._fit(DRAWS)
        answers, recommendation, costs = recommend_batch_size(
            self._description,
            self._throughput,
            results,
            fit,
            self._request.prices,
            self._request.objective,
            self._request.seed,
            self._request.workload_argument,
        )
        if recommendation:
            caveats = (*recommendation.caveats, *self._left_out())
            recommendation = replace(recommendation, caveats=caveats)
        advice = Advice(
            self._description,
            self._throughput,
            self._request.prices,
            results,
            fit,
            costs,
            answers,
            recommendation,
            spent(studies),
        )
        self._tools.store.save_advice(advice)
        return advice


def _candidates(
    throughput: Throughput, request: RecommendRequest, description: WorkloadDescription
) -> Sequence[int]:
    """Return the batch sizes that were asked for and ran, up to a little beyond saturation, ascending."""
    asked = asked_batch_sizes(request.batch_sizes, description.training_examples)
    ran = [row.batch_size for row in throughput.table if row.time_per_step_s and row.batch_size in asked]
    saturation = throughput.saturation_batch_size
    if saturation is not None and not request.batch_sizes.listed:
        ran = [batch_size for batch_size in ran if batch_size <= BEYOND_SATURATION * saturation]
    if not ran:
        why = next((row.detail.splitlines()[0] for row in throughput.table if row.outcome in UNMEASURED), "")
        raise WorkloadError(f"None of the batch sizes asked for could be trained. {why}".strip())
    return ran


def _check_target(description: WorkloadDescription) -> None:
    target = required_target(description)
    value = description.initial_metrics[target.metric]
    if target.reached(value):
        raise WorkloadError(
            f"The untrained model already meets the target: validation {target.metric} is {value:.4g} and "
            f"the target is {target}. Choose a stricter target."
        )


def _nothing_reached(description: WorkloadDescription, studies: Sequence[tuple[int, Sequence[Trial]]]) -> str:
    target = required_target(description)
    values = [
        point.metrics[target.metric] for _, trials in studies for trial in trials for point in trial.curve
    ]
    short = [value for value in values if math.isfinite(value) and not target.reached(value)]
    if not short or all(trial.state is TrialState.INFEASIBLE for _, trials in studies for trial in trials):
        return (
            f"No batch size reached the target ({target}): every training diverged. Look at the data and the "
            "loss, or give the learning rate a lower range in a study file."
        )
    seen = f"the best was {(max if target.maximize else min)(short):.4g}"
    return (
        f"No batch size reached the target ({target}); {seen}. Relax the target, or let trials run longer "
        "with --max-examples-per-trial."
    )
