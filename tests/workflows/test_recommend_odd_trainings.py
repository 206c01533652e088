"""Metrics that are no numbers, batch sizes that diverge or never arrive, seeds that fail, few trials."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from advisor.records.recommendation import Advice
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.records.scaling import FitOutcome
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Evaluation, Preparation
from advisor.records.trials import Trial, TrialPurpose, TrialState
from advisor.training.quadratic_session import QuadraticSession, QuadraticSessions, QuadraticSettings
from advisor.workflows.ports import TrainingSession
from advisor.workflows.tools import Tools
from tests.workflows.conftest import recommend, tools_for

REQUEST = RecommendRequest(batch_sizes=BatchSizes(16, 256), max_examples_per_trial=10**9)


@dataclass(frozen=True)
class Moment:
    """Where a training stands."""

    batch_size: int
    learning_rate: float
    seed: int
    step: int


Spoil = Callable[[Moment, float], float]
"""Returns a loss in the place of the true one."""


class SpoiltSession(QuadraticSession):
    """A noisy quadratic model that reports other losses."""

    def __init__(self, settings: QuadraticSettings, training: Spoil, validation: Spoil) -> None:
        super().__init__(settings)
        self._spoil_training, self._spoil_validation = training, validation
        self._at = Moment(0, 0.0, 0, 0)

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        self._at = Moment(batch_size, self.values(hyperparameters)[0], seed, 0)
        return super().reset(batch_size, hyperparameters, seed)

    def train(self, steps: int) -> BlockTiming:
        block = super().train(steps)
        self._at = replace(self._at, step=self._at.step + steps)
        return replace(block, training_loss=self._spoil_training(self._at, block.training_loss))

    def evaluate(self, split: str) -> Evaluation:
        found = super().evaluate(split)
        return replace(found, metrics={"loss": self._spoil_validation(self._at, found.metrics["loss"])})


def as_it_is(_at: Moment, loss: float) -> float:
    return loss


@dataclass(frozen=True)
class SpoiltSessions:
    training: Spoil = as_it_is
    validation: Spoil = as_it_is
    settings: QuadraticSettings = field(default_factory=QuadraticSettings)

    def open(self) -> TrainingSession:
        return SpoiltSession(self.settings, self.training, self.validation)


def ask(sessions: SpoiltSessions, request: RecommendRequest = REQUEST) -> tuple[Tools, Advice]:
    tools = tools_for(sessions)
    return tools, recommend(tools, request)


@pytest.fixture(scope="module")
def plain() -> Advice:
    return recommend(tools_for(QuadraticSessions()), REQUEST)


def test_a_metric_that_is_no_number_for_a_while_changes_nothing(plain: Advice) -> None:
    _, advice = ask(SpoiltSessions(validation=lambda at, loss: math.nan if at.step < 40 else loss))
    assert advice.recommendation == plain.recommendation
    assert [result.steps for result in advice.results] == [result.steps for result in plain.results]


def test_one_batch_size_at_which_every_training_diverges_is_told_and_the_others_answer() -> None:
    def diverge(at: Moment, loss: float) -> float:
        return math.inf if at.batch_size == 128 else loss

    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 32, 64, 128, 256)))
    _, advice = ask(SpoiltSessions(training=diverge), request)
    assert advice.recommendation is not None and advice.recommendation.batch_size != 128
    assert "Every training diverged at batch size 128." in advice.recommendation.caveats
    assert {result.batch_size: result.steps for result in advice.results}[128] is None
    assert advice.fit.outcome is not FitOutcome.INSUFFICIENT


def test_weights_that_are_lost_are_told_as_divergence_whatever_the_training_loss_says() -> None:
    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 64, 256)))

    def lose(at: Moment, loss: float) -> float:
        return math.nan if at.batch_size == 64 else loss

    _, advice = ask(SpoiltSessions(validation=lose), request)
    assert advice.recommendation is not None
    assert "Every training diverged at batch size 64." in advice.recommendation.caveats


@pytest.mark.parametrize(("examples", "is_told"), [(20, True), (100, False)])
def test_a_small_validation_split_is_told(examples: int, is_told: bool) -> None:
    settings = QuadraticSettings(validation_examples=examples)
    _, advice = ask(SpoiltSessions(settings=settings), replace(REQUEST, batch_sizes=BatchSizes(listed=(64,))))
    assert advice.recommendation is not None
    words = "The validation split has 20 examples, each of which counts for 5 % of its result"
    assert any(caveat.startswith(words) for caveat in advice.recommendation.caveats) == is_told


def test_two_batch_sizes_give_the_better_one_and_no_curve() -> None:
    _, advice = ask(SpoiltSessions(), replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 256))))
    assert advice.recommendation is not None and advice.recommendation.batch_size == 256
    assert advice.fit.outcome is FitOutcome.INSUFFICIENT
    assert any("Too few batch sizes" in caveat for caveat in advice.recommendation.caveats)


def test_one_batch_size_is_its_own_answer() -> None:
    _, advice = ask(SpoiltSessions(), replace(REQUEST, batch_sizes=BatchSizes(listed=(64,))))
    assert advice.recommendation is not None and advice.recommendation.batch_size == 64


def test_a_target_that_the_largest_batch_sizes_alone_miss_is_answered_below_them() -> None:
    def stand_still(at: Moment, loss: float) -> float:
        return max(loss, 0.2) if at.batch_size >= 128 else loss

    request = replace(REQUEST, batch_sizes=BatchSizes(4, 512))
    _, advice = ask(SpoiltSessions(validation=stand_still), request)
    assert advice.recommendation is not None and advice.recommendation.batch_size <= 64
    reached = [result.batch_size for result in advice.results if result.steps]
    missed = [result.batch_size for result in advice.results if not result.steps]
    assert len(reached) >= 3 and missed and min(missed) >= 128
    assert any("The target was not reached at batch size" in one for one in advice.recommendation.caveats)


@pytest.mark.parametrize(("failing", "falls_back"), [((1,), False), ((3,), False), ((1, 2), True)])
def test_other_rates_are_measured_where_most_fresh_seeds_fail(
    failing: tuple[int, ...], falls_back: bool
) -> None:
    """The rate that is selected without failures fails with some seeds; with one of three it stays."""
    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 64, 256)), seeds=3)
    _, plain = ask(SpoiltSessions(), request)
    (selected,) = (result for result in plain.results if result.batch_size == 64)
    assert selected.best is not None
    rate = float(selected.best["learning_rate"])

    def fail(at: Moment, loss: float) -> float:
        fails = at.batch_size == 64 and at.seed in failing and at.learning_rate > 0.99 * rate
        return max(loss, 0.2) if fails else loss

    tools, advice = ask(SpoiltSessions(validation=fail), request)
    (result,) = (result for result in advice.results if result.batch_size == 64)
    assert result.best is not None and result.steps is not None
    assert (float(result.best["learning_rate"]) < 0.99 * rate) == falls_back
    assert sum(found.censored for found in result.crossings) == (0 if falls_back else 1)
    fresh = [
        trial
        for study in tools.store.studies()
        for trial in tools.store.trials(study.name)
        if trial.batch_size == 64 and trial.plan.purpose is TrialPurpose.MEASURE
    ]
    # Failures are known after two seeds at most; then the next smaller rate takes three.
    assert len(fresh) <= (5 if falls_back else 3)


def selecting(tools: Tools, batch_size: int) -> list[Trial]:
    return [
        trial
        for study in tools.store.studies()
        for trial in tools.store.trials(study.name)
        if trial.batch_size == batch_size and trial.plan.purpose is TrialPurpose.SELECT
    ]


@pytest.mark.parametrize("most", [1, 3])
def test_few_trials_are_not_spent_on_short_ones(most: int) -> None:
    request = replace(
        REQUEST,
        batch_sizes=BatchSizes(listed=(64,)),
        trials_per_batch_size=most,
        max_examples_per_trial=4_000_000,
    )
    tools, advice = ask(SpoiltSessions(), request)
    assert advice.recommendation is not None and advice.recommendation.batch_size == 64
    assert len(selecting(tools, 64)) <= most


def test_a_learning_rate_from_nowhere_is_found_by_short_trials() -> None:
    most_examples = 4_000_000
    request = replace(
        REQUEST,
        batch_sizes=BatchSizes(listed=(64,)),
        trials_per_batch_size=16,
        max_examples_per_trial=most_examples,
    )
    tools, advice = ask(SpoiltSessions(settings=QuadraticSettings(learning_rate=0.002)), request)
    (result,) = advice.results
    assert result.steps is not None and result.best is not None
    best, trials = float(result.best["learning_rate"]), selecting(tools, 64)
    assert len(trials) <= 16
    far = [trial for trial in trials if float(trial.plan.hyperparameters["learning_rate"]) < best / 8]
    assert far and all(trial.steps <= most_examples / 64 / 7.9 for trial in far)


def test_a_batch_size_that_nothing_reached_is_censored_where_its_trials_ended() -> None:
    def stand_still(at: Moment, loss: float) -> float:
        return max(loss, 0.2) if at.batch_size == 64 else loss

    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 64, 256)))
    tools, advice = ask(SpoiltSessions(validation=stand_still), request)
    (result,) = (result for result in advice.results if result.batch_size == 64)
    (found,) = result.crossings
    assert result.best is None and found.censored
    assert found.low <= max(2.1 * trial.steps for trial in selecting(tools, 64))


def test_a_trial_far_behind_the_pace_of_another_batch_size_is_stopped() -> None:
    """At 64 every rate above a small one stands still early: the pace at 16 shows that soon."""

    def stand_still(at: Moment, loss: float) -> float:
        return max(loss, 0.4) if at.batch_size == 64 and at.learning_rate > 0.02 else loss

    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(16, 64, 256)))
    tools, _ = ask(SpoiltSessions(validation=stand_still), request)
    stopped = [
        trial
        for study in tools.store.studies()
        for trial in tools.store.trials(study.name)
        if trial.batch_size == 64 and trial.state is TrialState.STOPPED
    ]
    assert stopped and all(trial.steps < trial.plan.max_steps for trial in stopped)
