"""``advisor recommend``: from measured time per step and tuned steps to target to one batch size."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.analysis.caveats import caveats_on_validation
from advisor.analysis.choice import recommend_batch_size
from advisor.analysis.divergence import divergence_caveats
from advisor.analysis.further import further_sentence
from advisor.analysis.next_evidence import MOST_SEEDS
from advisor.analysis.noise_scale import starting_batch_size
from advisor.errors import InconclusiveError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.noise_scale import NoiseScale
from advisor.records.recommendation import Advice, SpendingPlan, Wish
from advisor.records.requests import RecommendRequest
from advisor.records.trials import Study, StudyKind, Trial, TrialState
from advisor.workflows.exploration import SEEDS, Exploration, Note, max_examples, most_batch_sizes
from advisor.workflows.measure import (
    UNMEASURED,
    asked_batch_sizes,
    batch_sizes_that_ran,
    ensure_measured,
)
from advisor.workflows.noise_scale import batch_size_for_noise_scale, noise_scale_hint
from advisor.workflows.retuning import tuned_names
from advisor.workflows.spending import (
    Allowance,
    expected_spending,
    planned,
    spending_sentence,
    spent,
    spread_evenly,
    trial_s,
    with_examples,
)
from advisor.workflows.steps_to_target import FALLBACKS
from advisor.workflows.studies import required_target
from advisor.workflows.tools import SessionKeeper, Tools, describe

BEYOND_SATURATION = 4
"""The curve is explored up to this multiple of the saturation batch size, which bounds the advice itself."""


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
        tuned_names(self._description, request.tune)  # Refused before anything is measured.
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        self._throughput = ensure_measured(tools, keeper, self._description, measure)
        self._candidates = batch_sizes_that_ran(
            self._throughput, request.batch_sizes, self._description, BEYOND_SATURATION
        )

    @property
    def spending(self) -> SpendingPlan:
        """What the search may use, whichever batch sizes it comes to look at."""

        def cost_s(batch_size: int) -> float:
            return trial_s(batch_size, self._max_examples, self._throughput)

        dearest = sorted(self._candidates, key=cost_s)[-most_batch_sizes(self._request, self._candidates) :]
        seeds = self._request.seeds or SEEDS
        most_seeds = max(seeds, MOST_SEEDS)
        trainings = self._request.trials_per_batch_size + (1 + FALLBACKS) * most_seeds
        recorded, prices = self._recorded(), self._request.prices
        expected = expected_spending(
            spread_evenly(self._candidates, most_batch_sizes(self._request, self._candidates)),
            self._request.trials_per_batch_size,
            seeds,
            self._max_examples,
            self._throughput,
            prices,
            recorded,
        )
        return planned(
            sorted(dearest),
            trainings,
            self._max_examples,
            self._throughput,
            prices,
            sum(len(trials) for _, trials in recorded),
            expected,
        )

    def run(self, note: Note) -> Advice:
        """Search, and answer from what was found."""
        self._tools.progress.say(spending_sentence(self.spending))
        noise_scale = self._noise_scale()
        used = with_examples(spent(self._recorded()), noise_scale)
        allowance = Allowance(self._request.spend_examples, self._request.spend_time_s, used)
        search = Exploration(
            self._tools,
            self._keeper,
            self._description,
            self._request,
            self._times_per_step_s,
            allowance,
        )
        search.run(starting_batch_size(self._candidates, noise_scale), note)
        return self._advice(search, noise_scale)

    def _noise_scale(self) -> NoiseScale | None:
        """Return the hint where to start, as an earlier run found it; none where all sizes are listed."""
        if self._request.batch_sizes.listed:
            return None
        earlier = self._tools.store.latest_advice(self._description.name)
        training = self._description.fingerprint.training
        if earlier and earlier.noise_scale and earlier.description.fingerprint.training == training:
            return earlier.noise_scale
        batch_size = batch_size_for_noise_scale(self._candidates, self._description.training_examples)
        found = noise_scale_hint(self._keeper, self._description, batch_size, {}, self._request.seed)
        self._tools.progress.say(found.sentence)
        return found

    @property
    def _times_per_step_s(self) -> Mapping[int, float]:
        times_s = ((size, self._throughput.time_per_step_s(size)) for size in self._candidates)
        return {size: time_s.estimate for size, time_s in times_s if time_s}

    @property
    def _max_examples(self) -> int:
        return max_examples(self._request, self._description)

    def _studies(self) -> Sequence[Study]:
        return [
            study
            for study in self._tools.store.studies(self._description.name)
            if study.kind is StudyKind.STEPS_TO_TARGET
            and study.fingerprint == self._description.fingerprint.training
        ]

    def _recorded(self) -> Sequence[tuple[int, Sequence[Trial]]]:
        return [(study.batch_size, self._tools.store.trials(study.name)) for study in self._studies()]

    def _left_out(self, broken: Collection[int]) -> Iterator[str]:
        """Say which batch sizes that were asked for are missing from the evidence, and why."""
        if broken:
            sizes = ", ".join(f"{batch_size:,}" for batch_size in broken)
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

    def _advice(self, search: Exploration, noise_scale: NoiseScale | None) -> Advice:
        results = tuple(search.results[batch_size] for batch_size in sorted(search.results))
        studies = self._recorded()
        if not any(result.steps for result in results):
            raise InconclusiveError(search.cut or _nothing_reached(self._description, studies))
        fit = search.fit()
        answers, recommendation, costs = recommend_batch_size(
            self._description,
            self._throughput,
            results,
            fit,
            self._request.prices,
            Wish(self._request.deadline_s, self._request.max_cost, self._request.objective),
            self._request.seed,
            self._request.workload_argument,
        )
        if recommendation:
            diverged = divergence_caveats(study for study in studies if study[0] in search.results)
            cut = [search.cut] if search.cut else []
            caveats = (
                *recommendation.caveats,
                *caveats_on_validation(self._description),
                *diverged,
                *self._left_out(search.broken),
                *cut,
            )
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
            with_examples(spent(studies), noise_scale),
            noise_scale,
            further_sentence(search.further(fit), fit),
        )
        self._tools.store.save_advice(advice)
        if recommendation and recommendation.unmet:
            raise InconclusiveError(recommendation.unmet)
        return advice


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
