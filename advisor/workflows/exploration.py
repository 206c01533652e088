"""The search for steps to target over batch sizes: where to look next, and when enough is known."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from advisor.analysis.compass import Compass, progress
from advisor.analysis.design import from_the_middle, next_batch_size, step_limit, wanted_batch_size
from advisor.analysis.next_evidence import Worth, is_settled, most_telling, options
from advisor.analysis.optimizers import prior
from advisor.analysis.resampling import is_trusted
from advisor.analysis.scaling import fit_scaling, steps_at
from advisor.errors import SessionError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import RecommendRequest
from advisor.records.scaling import BatchSizeResult, FitOutcome, ScalingFit, SearchUncertainty
from advisor.records.target import Target
from advisor.records.trials import StudyKind, study_name
from advisor.workflows.pace import Pace
from advisor.workflows.retuning import compass_at, tuned_names
from advisor.workflows.spending import Allowance, AllowanceUsedUpError
from advisor.workflows.steps_to_target import BatchSizeSearch, Known
from advisor.workflows.studies import required_target
from advisor.workflows.tools import SessionKeeper, Tools

MOST_BATCH_SIZES = 7
"""Enough to show both regimes and their bend; more narrow the answer little (design of the search)."""
SEEDS = 1
"""Fresh seeds at each batch size where the user does not say; more are added where they tell most."""
LEAST_NARROWING = 0.03
"""Trainings that would narrow the answer by less than this share are not worth their time."""
LEAST_RETURN = 2.0
"""Nor are those that narrow it by less than this times the share that they add to the cost. (More of the same
evidence would narrow it with the square root of the cost.)"""
EPOCHS_PER_TRIAL = 100
"""How long the first trials may look for the target where the user sets no limit; later ones know better."""
HOPELESS_BATCH_SIZES = 3
"""Where none of so many batch sizes reached the target, no other is tried."""
DRAWS = 400
Note = Callable[[BatchSizeResult, Target], str]
"""Says in words what the search at one batch size found, for the dashboard."""


class Exploration:
    """Looks at batch sizes from ``start`` outwards, then where a training tells most for its cost.

    The batch sizes that it may look at are the keys of ``times_per_step_s``. ``results`` are what was found,
    ``broken`` the batch sizes that could not be trained, ``cut`` says that the allowance was used up before
    the search was done.
    """

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        request: RecommendRequest,
        times_per_step_s: Mapping[int, float],
        allowance: Allowance,
    ) -> None:
        self._tools, self._keeper, self._description = tools, keeper, description
        self._request, self._allowance = request, allowance
        self._times_per_step_s, self._candidates = times_per_step_s, sorted(times_per_step_s)
        self._tuned = tuned_names(description, request.tune)
        self._seeds = request.seeds or SEEDS
        self._searches: dict[int, BatchSizeSearch] = {}
        self.results: dict[int, BatchSizeResult] = {}
        self.broken: dict[int, SessionError] = {}
        self.cut = ""

    def run(self, start: int, note: Note) -> None:
        """Search until enough is known, or the allowance is used up."""
        while (look := self._next(start)) is not None:
            batch_size, seeds = look
            try:
                self.results[batch_size] = self._look_at(batch_size, seeds)
            except AllowanceUsedUpError as error:
                self.cut = str(error)
                self._tools.progress.say(self.cut)
                return
            except SessionError as error:
                self._leave_out(batch_size, error)
                continue
            self._say_found(self.results[batch_size], note)

    def _leave_out(self, batch_size: int, error: SessionError) -> None:
        """Go on without a batch size that cannot be trained, unless there is no other."""
        self.broken[batch_size] = error
        self._candidates = [other for other in self._candidates if other != batch_size]
        self._tools.progress.say(f"{error} Going on without batch size {batch_size:,}.")
        if len(self.broken) > len(self.results) + 1 or not self._candidates:
            raise error

    def _look_at(self, batch_size: int, seeds: int) -> BatchSizeResult:
        """Search at ``batch_size``, or go on with the search there until ``seeds`` fresh seeds are known."""
        if batch_size not in self._searches:
            self._searches[batch_size] = BatchSizeSearch(
                self._tools,
                self._keeper,
                self._description,
                self._request,
                batch_size,
                self._known(batch_size),
                self._allowance,
            )
        return self._searches[batch_size].run(seeds)

    def _known(self, batch_size: int) -> Known:
        limit = step_limit(self._steps, batch_size, max_examples(self._request, self._description))
        return Known(self._compass(batch_size), limit, self._pace(batch_size))

    def _compass(self, batch_size: int) -> Compass:
        """Return the search at ``batch_size``, begun from what the others found."""
        exponent = prior(self._description.optimizer).learning_rate_exponent
        optima, usual = {}, []
        for size, result in self.results.items():
            if result.best is not None and result.steps is not None:
                optima[size] = result.best
                # With linear scaling it stays the same; with a square root it falls as 1 over that.
                usual.append(progress(result.best, result.steps) * (batch_size / size) ** (exponent - 1))
        usual_progress = statistics.median(usual) if usual else None
        return compass_at(batch_size, self._tuned, self._description, optima, usual_progress)

    def _pace(self, batch_size: int) -> Pace | None:
        """Return the pace to expect at ``batch_size`` from the nearest one that reached the target."""
        reached = [size for size, result in self.results.items() if result.steps]
        nearest = min(reached, key=lambda size: abs(math.log(size / batch_size)), default=None)
        return self._searches[nearest].pace(batch_size) if nearest else None

    def _next(self, start: int) -> tuple[int, int] | None:
        """Return the batch size to look at next and how many fresh seeds it is to have, or None."""
        steps, listed = self._steps, self._request.batch_sizes.listed
        if len(steps) >= HOPELESS_BATCH_SIZES and not any(steps.values()):
            return None
        if listed and (batch_size := from_the_middle(self._candidates, steps)) is not None:
            return batch_size, self._seeds
        fit = self.fit()
        if not listed:
            wanted = self._wanted(fit)
            batch_size = next_batch_size(steps, self._candidates, start, wanted, MOST_BATCH_SIZES)
            if batch_size is not None:
                return batch_size, self._seeds
        return self._where_it_tells_most(fit)

    def _wanted(self, fit: ScalingFit) -> float:
        """Return how large a batch size the curve calls for, infinite where there is none to be trusted."""
        if fit.estimate is None or not is_trusted(fit):
            return math.inf
        twice = 2.0 * max(self.results) if fit.outcome is FitOutcome.LOWER_BOUND else 0.0
        times_s = {
            batch_size: self._times_per_step_s[batch_size] * float(steps_at(fit.estimate, batch_size))
            for batch_size in self._candidates
        }
        return max(twice, wanted_batch_size(fit.estimate[1], times_s, self.results))

    def _where_it_tells_most(self, fit: ScalingFit) -> tuple[int, int] | None:
        worth = None if is_settled(fit) else self._worth(fit)
        if worth is None or not self._is_worth_it(worth):
            return None
        batch_size = worth.option.batch_size
        known = self.results.get(batch_size)
        return batch_size, self._seeds if known is None else len(known.observations) + 1

    def _worth(self, fit: ScalingFit) -> Worth | None:
        """Return the trainings that would narrow the half-efficiency batch size most for their examples."""
        results = list(self.results.values())
        new = self._candidates if len(results) < MOST_BATCH_SIZES else ()
        choices = options(results, new, fit, self._seeds)
        return most_telling([choice for choice in choices if choice.batch_size not in self.broken], fit)

    def _is_worth_it(self, worth: Worth) -> bool:
        spent = sum(search.examples for search in self._searches.values())
        dearer = 1 + worth.option.examples / spent
        return bool(worth.spread_kept <= min(1 - LEAST_NARROWING, dearer**-LEAST_RETURN))

    def further(self, fit: ScalingFit) -> Worth | None:
        """Return what one more batch size would bring, None where there is none that could be tried."""
        choices = options(list(self.results.values()), self._candidates, fit, self._seeds)
        return most_telling([choice for choice in choices if choice.is_new], fit)

    def fit(self) -> ScalingFit:
        """Return the curve through what was found."""
        results = self.results.values()
        return fit_scaling(
            observations=[observation for result in results for observation in result.observations],
            uncertainty=[SearchUncertainty(result.batch_size, result.log_slack) for result in results],
            tried=sorted(self.results),
            overhead=self._request.overhead,
            seed=self._request.seed,
            draws=DRAWS,
        )

    @property
    def _steps(self) -> Mapping[int, float | None]:
        return {result.batch_size: result.steps for result in self.results.values()}

    def _say_found(self, result: BatchSizeResult, note: Note) -> None:
        found = f"{result.steps:,.1f} steps to target" if result.steps else "the target was not reached"
        self._tools.progress.say(f"Batch size {result.batch_size:,}: {found}.")
        expected = most_batch_sizes(self._request, self._candidates)
        self._tools.progress.advance("batch sizes", len(self.results), expected)
        name = study_name(
            self._description.name,
            self._description.fingerprint.training,
            StudyKind.STEPS_TO_TARGET,
            result.batch_size,
        )
        text = note(result, required_target(self._description))
        self._tools.store.set_note(name, text)
        self._tools.board.set_note(name, text)


def most_batch_sizes(request: RecommendRequest, candidates: Sequence[int]) -> int:
    """Return how many of ``candidates`` are looked at: all that are listed, else a few."""
    return len(candidates) if request.batch_sizes.listed else min(MOST_BATCH_SIZES, len(candidates))


def max_examples(request: RecommendRequest, description: WorkloadDescription) -> int:
    """Return on how many examples one trial may train."""
    return request.max_examples_per_trial or EPOCHS_PER_TRIAL * description.training_examples
