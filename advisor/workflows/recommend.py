"""``advisor recommend``: from measured time per step and tuned steps to target to one batch size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.analysis.choice import recommend_batch_size
from advisor.analysis.compass import Axis, Compass, start_learning_rate
from advisor.analysis.design import from_the_middle, next_batch_size, step_limit
from advisor.analysis.optimizers import prior, search_ranges
from advisor.analysis.quantities import duration
from advisor.analysis.scaling import fit_scaling
from advisor.errors import InconclusiveError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Advice, SpendingPlan
from advisor.records.requests import RecommendRequest
from advisor.records.scaling import BatchSizeResult, ScalingFit, SearchUncertainty
from advisor.records.search_space import Float, Scale
from advisor.records.trials import Study, StudyKind, Trial
from advisor.workflows.measure import ensure_measured
from advisor.workflows.spending import planned, spent
from advisor.workflows.steps_to_target import BatchSizeSearch, required_target
from advisor.workflows.tools import SessionKeeper, Tools

MOST_BATCH_SIZES = 7
"""Enough to show both regimes and their bend; more narrow the answer little (design of the search)."""
EPOCHS_PER_TRIAL = 100
"""How long the first trials may look for the target where the user sets no limit; later ones know better."""
BEYOND_SATURATION = 4
"""The curve is explored up to this multiple of the saturation batch size, which bounds the advice itself."""
HOPELESS_BATCH_SIZES = 2
"""Where none of so many batch sizes reached the target, no other is tried."""
SMALLEST_START = 1e-4
"""Where the search of a hyperparameter starts whose default is 0, such as weight decay."""
AIM_DRAWS = 50
DRAWS = 400
WIDE_STRIDES = (2.0, 1.0, 0.5)
NEAR_STRIDES = (1.0, 0.5)
"""In doublings: a factor of 4, then 2, then the square root of 2, within which the optimum is bracketed."""


def plan(tools: Tools, request: RecommendRequest) -> SpendingPlan:
    """Measure what is missing and return what :func:`recommend` may use; nothing is trained to a target."""
    with SessionKeeper(tools.sessions) as keeper:
        return _Recommending(tools, keeper, request).spending


def recommend(tools: Tools, request: RecommendRequest) -> Advice:
    """Find the batch size to use.

    Raises :class:`~advisor.errors.WorkloadError` where the workload has no target or already meets it, and
    :class:`~advisor.errors.InconclusiveError` where no batch size reached the target.
    """
    with SessionKeeper(tools.sessions) as keeper:
        return _Recommending(tools, keeper, request).run()


class _Recommending:
    """One run of the whole search."""

    def __init__(self, tools: Tools, keeper: SessionKeeper, request: RecommendRequest) -> None:
        self._tools, self._keeper, self._request = tools, keeper, request
        self._description = keeper.session().describe()
        tools.store.save_description(self._description)
        _check_target(self._description)
        _check_tunable(self._description, request.tune)
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        self._throughput = ensure_measured(tools, keeper, self._description, measure)
        self._candidates = _candidates(self._throughput, request)
        self._results: dict[int, BatchSizeResult] = {}

        if not self._candidates:
            raise WorkloadError("None of the batch sizes asked for could be trained; see `advisor measure`.")

    @property
    def spending(self) -> SpendingPlan:
        """What the search may use."""
        likely = self._candidates[-MOST_BATCH_SIZES:]
        recorded = self._recorded_trials()
        return planned(likely, self._request, self._max_examples, self._throughput, recorded)

    def run(self) -> Advice:
        """Look at batch sizes from the middle outwards, then narrow the critical one down."""
        self._say_spending()
        while (batch_size := self._next()) is not None:
            self._results[batch_size] = self._look_at(batch_size)
            self._say_found(self._results[batch_size])
            self._tools.progress.advance("batch sizes", len(self._results), self._expected_batch_sizes)
        return self._advice()

    def _look_at(self, batch_size: int) -> BatchSizeResult:
        limit = step_limit(self._steps, batch_size, self._max_examples)
        search = BatchSizeSearch(
            self._tools, self._keeper, self._description, self._request, batch_size, limit
        )
        return search.run(self._compass(batch_size))

    def _next(self) -> int | None:
        steps = self._steps
        if len(steps) >= HOPELESS_BATCH_SIZES and not any(steps.values()):
            return None
        if self._request.batch_sizes.listed:
            return from_the_middle(self._candidates, steps)
        return next_batch_size(steps, self._candidates, self._aim(), MOST_BATCH_SIZES)

    def _aim(self) -> float | None:
        fit = self._fit(AIM_DRAWS)
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

    def _compass(self, batch_size: int) -> Compass:
        ranges = search_ranges(self._description)
        axes = (_axis(name, ranges[name], self._start(name, batch_size)) for name in self._request.tune)
        return Compass(tuple(axes), NEAR_STRIDES if any(self._steps.values()) else WIDE_STRIDES)

    def _start(self, name: str, batch_size: int) -> float:
        """Return where the search starts: the neighbour's optimum, the learning rate scaled."""
        optima = {
            result.batch_size: float(result.best[name]) for result in self._results.values() if result.best
        }
        default = self._description.optimizer_hyperparameters[name] or SMALLEST_START
        if name == "learning_rate":
            exponent = prior(self._description.optimizer).learning_rate_exponent
            return start_learning_rate(optima, batch_size, exponent, default)
        nearest = sorted(optima, key=lambda other: abs(other.bit_length() - batch_size.bit_length()))
        return optima[nearest[0]] if nearest else default

    @property
    def _expected_batch_sizes(self) -> int:
        if self._request.batch_sizes.listed:
            return len(self._candidates)
        return min(MOST_BATCH_SIZES, len(self._candidates))

    @property
    def _steps(self) -> Mapping[int, float | None]:
        return {result.batch_size: result.steps for result in self._results.values()}

    @property
    def _max_examples(self) -> int:
        asked = self._request.max_examples_per_trial
        return asked or EPOCHS_PER_TRIAL * self._description.training_examples

    def _recorded_trials(self) -> int:
        studies = self._studies()
        return sum(len(self._tools.store.trials(study.name)) for study in studies)

    def _studies(self) -> Sequence[Study]:
        return [
            study
            for study in self._tools.store.studies(self._description.name)
            if study.kind is StudyKind.STEPS_TO_TARGET
            and study.fingerprint == self._description.fingerprint.training
        ]

    def _say_spending(self) -> None:
        most = self.spending
        self._tools.progress.say(
            f"At most {most.trials:,} trainings and {duration(most.seconds)} of training; usually a small "
            "part of that, since a training ends as soon as it is slower than the best. "
            f"{most.already_recorded_trials:,} trainings are recorded already."
        )

    def _say_found(self, result: BatchSizeResult) -> None:
        found = f"{result.steps:,.1f} steps to target" if result.steps else "the target was not reached"
        self._tools.progress.say(f"Batch size {result.batch_size:,}: {found}.")

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


def _candidates(throughput: Throughput, request: RecommendRequest) -> Sequence[int]:
    """Return the batch sizes that ran and were asked for, up to a little beyond saturation, ascending."""
    asked = request.batch_sizes
    ran = [row.batch_size for row in throughput.table if row.time_per_step_s is not None]
    if asked.listed:
        return [batch_size for batch_size in ran if batch_size in asked.listed]
    most = min(asked.maximum or ran[-1], BEYOND_SATURATION * (throughput.saturation_batch_size or ran[-1]))
    return [batch_size for batch_size in ran if asked.minimum <= batch_size <= most]


def _axis(name: str, range_: object, start: float) -> Axis:
    assert isinstance(range_, Float)
    return Axis(name, range_, min(max(start, range_.low), range_.high))


def _check_target(description: WorkloadDescription) -> None:
    target = required_target(description)
    value = description.initial_metrics[target.metric]
    if target.reached(value):
        raise WorkloadError(
            f"The untrained model already meets the target: validation {target.metric} is {value:.4g} and "
            f"the target is {target}. Choose a stricter target."
        )


def _check_tunable(description: WorkloadDescription, names: Sequence[str]) -> None:
    ranges = search_ranges(description)
    usable = [
        name
        for name, range_ in ranges.items()
        if range_.__class__ is Float and range_.scale is not Scale.LINEAR
    ]
    unusable = [name for name in names if name not in usable]
    if unusable:
        raise WorkloadError(
            f"{unusable[0]!r} cannot be retuned at each batch size with optimizer "
            f"{description.optimizer!r}; choose among {', '.join(usable) or 'nothing'}."
        )


def _nothing_reached(description: WorkloadDescription, studies: Sequence[tuple[int, Sequence[Trial]]]) -> str:
    target = required_target(description)
    values = [
        point.metrics[target.metric] for _, trials in studies for trial in trials for point in trial.curve
    ]
    best = (max if target.maximize else min)(filter(math.isfinite, values), default=None)
    seen = f"the best was {best:.4g}" if best is not None else "every training diverged"
    return (
        f"No batch size reached the target ({target}); {seen}. Relax the target, or let trials run longer "
        "with --max-examples-per-trial."
    )
