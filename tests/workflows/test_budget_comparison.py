import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from advisor.analysis.quadratic import QuadraticModel, Trajectory
from advisor.errors import InconclusiveError, SessionError, WorkloadError
from advisor.records.budget_comparison import Budget, BudgetComparison, BudgetKind
from advisor.records.description import WorkloadDescription
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.records.search_space import Float
from advisor.records.trials import StudyKind
from advisor.storage.store import open_store
from advisor.training.quadratic_session import QuadraticSession, QuadraticSessions, QuadraticSettings
from advisor.tuning.board import open_board
from advisor.workflows.budget_comparison import compare_at, plan
from advisor.workflows.ports import TrainingSession
from tests.fakes.memory_board import MemoryBoard
from tests.workflows.conftest import WatchedSessions, tools_for

SIZES = (8, 64, 512)
REQUEST = RecommendRequest(batch_sizes=BatchSizes(listed=SIZES))
STEPS, EXAMPLES = Budget(BudgetKind.STEPS, 200), Budget(BudgetKind.EXAMPLES, 20_000)


class Untargeted(QuadraticSession):
    """The noisy quadratic model of a user who has no target."""

    def describe(self) -> WorkloadDescription:
        return replace(super().describe(), target=None)


@dataclass(frozen=True)
class UntargetedSessions:
    def open(self) -> TrainingSession:
        return Untargeted(QuadraticSettings(log_noise=0.1))


def true_losses(budget: Budget) -> Mapping[int, float]:
    """The least loss within the budget at each batch size, over a fine grid of learning rates."""
    model = QuadraticModel.power_law()
    rates = [2.0 ** (power / 16) for power in range(-112, 20)]
    return {
        size: min(Trajectory(model, size, rate, 0.0).loss(budget.steps(size)) for rate in rates)
        for size in SIZES
    }


@pytest.fixture(scope="module", params=[STEPS, EXAMPLES], ids=str)
def budget(request: pytest.FixtureRequest) -> Budget:
    assert isinstance(request.param, Budget)
    return request.param


@pytest.fixture(scope="module")
def exact(budget: Budget) -> BudgetComparison:
    return compare_at(tools_for(QuadraticSessions()), REQUEST, budget)


def test_each_batch_size_gets_its_true_best_result(exact: BudgetComparison, budget: Budget) -> None:
    truth = true_losses(budget)
    assert [result.batch_size for result in exact.results] == list(SIZES)
    for result in exact.results:
        assert result.steps == budget.steps(result.batch_size)
        assert result.value is not None
        assert 0.98 * truth[result.batch_size] <= result.value <= 1.1 * truth[result.batch_size]


def test_larger_batches_gain_under_steps_and_lose_under_examples(
    exact: BudgetComparison, budget: Budget
) -> None:
    best = max(SIZES) if budget.kind is BudgetKind.STEPS else min(SIZES)
    assert exact.agreement.best == best
    words = "see more data" if budget.kind is BudgetKind.STEPS else "look worse than they are"
    assert words in exact.caveats[0]


def test_fresh_seeds_of_one_model_agree_and_others_do_not() -> None:
    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(64, 65, 512)), seeds=4)
    found = compare_at(tools_for(UntargetedSessions()), request, EXAMPLES).agreement
    assert found.agree == (64, 65) and found.spread is not None
    assert "within run-to-run noise" in found.sentence and "512 (by " in found.sentence


def test_one_seed_each_leaves_the_noise_unknown() -> None:
    found = compare_at(tools_for(UntargetedSessions()), replace(REQUEST, seeds=1), STEPS).agreement
    assert found.spread is None and "noise is not known" in found.sentence


def test_a_second_run_trains_nothing_and_the_studies_stand_on_the_board() -> None:
    sessions = WatchedSessions(QuadraticSettings(log_noise=0.1))
    tools = tools_for(sessions)
    first, calls = compare_at(tools, REQUEST, STEPS), sessions.calls[0]
    assert compare_at(tools, REQUEST, STEPS) == first and sessions.calls[0] == calls
    studies = tools.store.studies()
    assert {study.kind for study in studies} == {StudyKind.COMPARE_AT}
    assert {study.settings["budget"] for study in studies} == {"steps=200"}
    assert isinstance(tools.board, MemoryBoard)
    for study in studies:
        shown = tools.board.studies[study.name]
        assert len(shown.trials) == len(tools.store.trials(study.name)) and shown.note == study.note != ""


def test_another_budget_is_another_study() -> None:
    tools = tools_for(QuadraticSessions())
    compare_at(tools, REQUEST, STEPS)
    longer = compare_at(tools, REQUEST, replace(STEPS, amount=400))
    assert len(tools.store.studies()) == 2 * len(SIZES)
    assert {result.steps for result in longer.results} == {400}


def test_the_plan_trains_nothing_and_bounds_what_is_spent() -> None:
    tools = tools_for(QuadraticSessions())
    before = plan(tools, REQUEST, EXAMPLES)
    assert tools.store.studies() == [] and before.expected is not None
    spent = compare_at(tools, REQUEST, EXAMPLES).spent
    assert spent.trials <= before.trials and spent.examples <= before.examples
    assert before.expected.trials / 2 <= spent.trials <= 2 * before.expected.trials
    after = plan(tools, REQUEST, EXAMPLES)
    assert after.already_recorded_trials == spent.trials
    assert after.expected is not None and after.expected.trials == 0


def test_what_the_budget_does_not_fill_is_left_out_or_refused() -> None:
    tools, budget = tools_for(QuadraticSessions()), Budget(BudgetKind.EXAMPLES, 300)
    found = compare_at(tools, REQUEST, budget)
    assert [result.batch_size for result in found.results] == [8, 64]
    assert any("512 was left out: 300 examples do not fill one batch" in line for line in found.caveats)
    with pytest.raises(WorkloadError, match="budget of 5 examples does not fill one batch of 8"):
        compare_at(tools, REQUEST, replace(budget, amount=5))


def test_training_that_always_diverges_is_told() -> None:
    settings = QuadraticSettings(search_space={"learning_rate": Float(50.0, 1000.0, log=True)})
    request = replace(REQUEST, trials_per_batch_size=3)
    with pytest.raises(InconclusiveError, match="every training diverged"):
        compare_at(tools_for(QuadraticSessions(settings)), request, STEPS)


def test_a_batch_size_that_cannot_be_trained_is_left_out() -> None:
    def before(batch_size: int, number: int) -> None:
        if batch_size == 64 and number > 100:
            raise SessionError("the process died")

    found = compare_at(tools_for(WatchedSessions(QuadraticSettings(), before)), REQUEST, STEPS)
    assert [result.batch_size for result in found.results] == [8, 512]
    assert "Batch size 64 could not be trained and was left out." in found.caveats


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(WorkloadError, match="reports loss"):
        compare_at(tools_for(QuadraticSessions()), REQUEST, STEPS, "accuracy")


def test_real_storage_and_real_studies(sqlite_url: str) -> None:
    store, board = open_store(sqlite_url), open_board(sqlite_url)
    tools = replace(tools_for(UntargetedSessions()), store=store, board=board)
    request = replace(REQUEST, batch_sizes=BatchSizes(listed=(8, 64)), trials_per_batch_size=2)
    budget = replace(STEPS, amount=5)
    try:
        found = compare_at(tools, request, budget)
        assert compare_at(tools, request, budget) == found
        assert all(math.isfinite(value) for result in found.results for value in result.values)
    finally:
        store.close()
        board.close()
