"""``advisor recommend --compare-at``: batch sizes under one budget of steps or examples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from advisor.analysis.agreement import agreeing, run_to_run_spread
from advisor.analysis.design import from_the_middle
from advisor.analysis.quantities import number
from advisor.errors import InconclusiveError, SessionError, WorkloadError
from advisor.records.budget_comparison import Agreement, Budget, BudgetComparison, BudgetKind, BudgetResult
from advisor.records.recommendation import SpendingPlan
from advisor.records.requests import RecommendRequest
from advisor.records.trials import Study, StudyKind, TrialState
from advisor.workflows.budget_search import BudgetSearch, budget_study, recorded_trials
from advisor.workflows.measure import batch_sizes_that_ran, ensure_measured
from advisor.workflows.objective import objective
from advisor.workflows.retuning import compass_at, tuned_names
from advisor.workflows.spending import (
    EXPECTED_TRIALS,
    expected_trainings,
    planned,
    spending_sentence,
    spent,
    spread_evenly,
)
from advisor.workflows.steps_to_target import FALLBACKS
from advisor.workflows.tools import SessionKeeper, Tools, describe

SEEDS = 2
"""Fresh seeds at each batch size where the user does not say: with one the noise would not be known."""
MOST_BATCH_SIZES = 5
"""So many, evenly spread, are compared where the user lists none."""


def plan(tools: Tools, request: RecommendRequest, budget: Budget, metric: str | None = None) -> SpendingPlan:
    """Measure what is missing and return what :func:`compare_at` may use; nothing is trained."""
    with SessionKeeper(tools.sessions) as keeper:
        return _Comparing(tools, keeper, request, budget, metric).spending


def compare_at(
    tools: Tools, request: RecommendRequest, budget: Budget, metric: str | None = None
) -> BudgetComparison:
    """Compare batch sizes by their best validation ``metric`` within ``budget``.

    It is the target's metric by default, or loss. The hyperparameters of the request are retuned at each
    batch size, with equally many trials; the best checkpoint anywhere within the budget counts; fresh seeds
    measure the selected ones. Raises :class:`~advisor.errors.WorkloadError` where the budget does not fill
    one batch, and :class:`~advisor.errors.InconclusiveError` where every training diverged.
    """
    with SessionKeeper(tools.sessions) as keeper:
        return _Comparing(tools, keeper, request, budget, metric).run()


class _Comparing:
    """One comparison."""

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        request: RecommendRequest,
        budget: Budget,
        metric: str | None,
    ) -> None:
        self._tools, self._keeper, self._request, self._budget = tools, keeper, request, budget
        self._description = describe(tools, keeper)
        target = self._description.target
        self._objective = objective(self._description, metric, (target.metric if target else "loss",))
        self._tuned = tuned_names(self._description, request.tune)
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        self._throughput = ensure_measured(tools, keeper, self._description, measure)
        ran = batch_sizes_that_ran(self._throughput, request.batch_sizes, self._description)
        self._sizes = _compared(ran, budget, bool(request.batch_sizes.listed))
        self._too_large = [size for size in request.batch_sizes.listed if not budget.steps(size)]
        self._seeds = request.seeds or SEEDS
        self._results: dict[int, BudgetResult] = {}
        self._broken: dict[int, SessionError] = {}

    @property
    def spending(self) -> SpendingPlan:
        """What the comparison may use, and what is expected."""
        request, examples = self._request, {size: size * self._budget.steps(size) for size in self._sizes}
        recorded = {size: len(recorded_trials(self._tools, self._study(size))) for size in self._sizes}
        left = [size for size in self._sizes if not recorded[size]]
        trials = min(EXPECTED_TRIALS, request.trials_per_batch_size)
        expected = expected_trainings(
            left,
            trials + self._seeds,
            examples,
            self._throughput,
            request.prices,
            f"assuming {trials} trials and {self._seeds} fresh seeds at each batch size",
        )
        most = request.trials_per_batch_size + (1 + FALLBACKS) * self._seeds
        known = sum(recorded.values())
        return planned(self._sizes, most, examples, self._throughput, request.prices, known, expected)

    def run(self) -> BudgetComparison:
        """Look at batch sizes from the middle outwards, so that each starts from its neighbour's optimum."""
        self._tools.progress.say(spending_sentence(self.spending))
        while (size := from_the_middle(self._sizes, {*self._results, *self._broken})) is not None:
            try:
                self._results[size] = self._look_at(size)
            except SessionError as error:
                self._broken[size] = error
                self._tools.progress.say(f"{error} Going on without batch size {size:,}.")
            done = len(self._results) + len(self._broken)
            self._tools.progress.advance("batch sizes", done, len(self._sizes))
        if not self._results:
            raise next(iter(self._broken.values()))
        return self._comparison()

    def _study(self, batch_size: int) -> Study:
        """Return the study of this budget and metric at ``batch_size``."""
        return budget_study(
            self._description,
            StudyKind.COMPARE_AT,
            f"{self._budget}/{self._objective.metric}",
            batch_size,
            self._objective,
            {"budget": str(self._budget), "max_train_steps": self._budget.steps(batch_size)},
            self._request,
        )

    def _look_at(self, batch_size: int) -> BudgetResult:
        steps = self._budget.steps(batch_size)
        search = BudgetSearch(
            self._tools, self._keeper, self._description, self._study(batch_size), self._request, steps
        )
        optima = {size: found.best for size, found in self._results.items() if found.best}
        compass = compass_at(batch_size, self._tuned, self._description, optima)
        measured = search.run(compass, self._seeds)
        values = [search.value(trial) for trial in measured.fresh] if measured else []
        time_s = self._throughput.time_per_step_s(batch_size)
        result = BudgetResult(
            batch_size=batch_size,
            steps=steps,
            best=measured.best if measured else None,
            at_edge=measured is not None and measured.at_edge,
            trials=len(search.used),
            infeasible=sum(trial.state is TrialState.INFEASIBLE for trial in search.used.values()),
            values=tuple(value for value in values if value is not None),
            diverged=values.count(None),
            time_s=time_s.scaled(steps) if time_s else None,
        )
        search.say(self._found(result))
        return result

    def _found(self, result: BudgetResult) -> str:
        what = f"validation {self._objective.metric} within {result.steps:,} steps"
        if result.value is None:
            return f"Batch size {result.batch_size:,}: every training diverged."
        return (
            f"Batch size {result.batch_size:,}: best {what} is {result.value:.4g} "
            f"(mean of {len(result.values)} fresh seeds)."
        )

    def _comparison(self) -> BudgetComparison:
        results = tuple(self._results[size] for size in sorted(self._results))
        if not any(result.values for result in results):
            raise InconclusiveError(
                f"No batch size can be compared at {self._budget.words}: every training diverged. Look at "
                "the data and the loss, or give the learning rate a lower range in a study file."
            )
        argument = self._request.workload_argument
        studies = [(size, recorded_trials(self._tools, self._study(size))) for size in self._sizes]
        return BudgetComparison(
            workload=self._description.name,
            configuration=self._description.configuration,
            metric=self._objective.metric,
            maximize=self._objective.maximize,
            budget=self._budget,
            results=results,
            agreement=agreement(results, self._objective.maximize),
            caveats=(*_of_the_budget(self._budget, results), *self._of_the_runs(results)),
            spent=spent(studies),
            next=f"advisor recommend {argument}".strip(),
        )

    def _of_the_runs(self, results: Sequence[BudgetResult]) -> Iterator[str]:
        edges = [result.batch_size for result in results if result.at_edge]
        if edges:
            yield (
                f"The best hyperparameters at batch size {_listed(edges)} lie at the edge of their range: "
                "better ones may lie beyond it."
            )
        diverged = [result.batch_size for result in results if result.diverged]
        if diverged:
            yield f"Fresh seeds diverged at batch size {_listed(diverged)}; they are left out of the means."
        if self._broken:
            yield f"Batch size {_listed(sorted(self._broken))} could not be trained and was left out."
        if self._too_large:
            yield (
                f"Batch size {_listed(self._too_large)} was left out: {self._budget.words} do not fill one "
                "batch."
            )


def agreement(results: Sequence[BudgetResult], maximize: bool) -> Agreement:
    """Return which batch sizes agree with the best within run-to-run noise, in words too."""
    values = {result.batch_size: result.values for result in results if result.values}
    means = {size: fmean(runs) for size, runs in values.items()}
    best = (max if maximize else min)(means, key=lambda size: means[size])
    spread, freedom = run_to_run_spread(values)
    agree = agreeing(values, maximize)
    if len(values) == 1:
        sentence = f"Batch size {best:,} alone gave a result, so there is nothing to compare."
    elif not freedom:
        sentence = (
            f"Batch size {best:,} is best, but with one fresh seed each the run-to-run noise is not known: "
            "use --seeds 2 or more."
        )
    else:
        sentence = _agreement_sentence(best, agree, means, spread)
    return Agreement(best, agree, spread if freedom else None, sentence)


def _agreement_sentence(best: int, agree: Sequence[int], means: Mapping[int, float], spread: float) -> str:
    noise = f"seeds differ by {number(spread)} (standard deviation)"
    others = [size for size in means if size not in agree]
    if not others:
        return f"All batch sizes agree within run-to-run noise: {noise}."
    worse = ", ".join(f"{size:,} (by {number(abs(means[size] - means[best]))})" for size in sorted(others))
    with_it = [size for size in agree if size != best]
    first = (
        f"Batch size {_listed(with_it)} agrees with the best, {best:,}, within run-to-run noise"
        if with_it
        else f"Batch size {best:,} is better than all others by more than run-to-run noise"
    )
    return f"{first}: {noise}. Worse by more than that: {worse}."


def _of_the_budget(budget: Budget, results: Sequence[BudgetResult]) -> Iterator[str]:
    small, large = results[0], results[-1]
    if budget.kind is BudgetKind.EXAMPLES:
        yield (
            "Under an example budget only the perfect-scaling regime is probed: a larger batch takes fewer "
            f"steps ({large.steps:,} at batch size {large.batch_size:,}, {small.steps:,} at "
            f"{small.batch_size:,}), so that larger batches look worse than they are."
        )
    else:
        yield (
            "Under a step budget larger batches see more data: "
            f"{large.steps * large.batch_size:,} examples at batch size {large.batch_size:,}, "
            f"{small.steps * small.batch_size:,} at {small.batch_size:,}. A better result is not the batch "
            "size's own: with enough steps each reaches the same."
        )


def _compared(ran: Sequence[int], budget: Budget, listed: bool) -> Sequence[int]:
    """Return which of the batch sizes that ran are compared: those that the budget fills, evenly spread."""
    filled = [size for size in ran if budget.steps(size)]
    if not filled:
        raise WorkloadError(
            f"A budget of {budget.words} does not fill one batch of {ran[0]:,}: allow more, or name "
            "smaller batch sizes."
        )
    return filled if listed else spread_evenly(filled, MOST_BATCH_SIZES)


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)
