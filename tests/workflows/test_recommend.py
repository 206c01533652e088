import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from advisor.analysis.quadratic import QuadraticModel, best_learning_rate
from advisor.errors import InconclusiveError, OutOfMemoryError, SessionError, WorkloadError
from advisor.records.recommendation import Advice, Objective, Prices
from advisor.records.requests import BatchSizes, MeasureRequest, RecommendRequest
from advisor.records.scaling import FitOutcome
from advisor.records.search_space import Float
from advisor.records.target import Target
from advisor.records.trials import TrialPurpose, TrialState
from advisor.storage.store import open_store
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.tuning.board import open_board
from advisor.workflows.measure import measure
from advisor.workflows.recommend import plan
from advisor.workflows.retuning import tuned_names
from advisor.workflows.tools import Tools
from tests.fakes.memory_board import MemoryBoard
from tests.workflows.conftest import WatchedSessions, recommend, said, tools_for

REQUEST = RecommendRequest(batch_sizes=BatchSizes(1, 4096), max_examples_per_trial=10**9)
SHORT = replace(REQUEST, batch_sizes=BatchSizes(16, 256), seeds=1)
MODEL = QuadraticModel.power_law()
TRUE_STEPS = {size: best_learning_rate(MODEL, size, 0.1)[1] for size in (2**power for power in range(13))}


def true_critical_batch_size(overhead: float = 0.2) -> float:
    """Where the exact examples to target exceed their minimum by ``overhead``, between powers of two."""
    sizes = sorted(TRUE_STEPS)
    examples = [size * (TRUE_STEPS[size] or math.inf) for size in sizes]
    wanted = (1 + overhead) * min(examples)
    return math.exp(float(np.interp(math.log(wanted), np.log(examples), np.log(sizes))))


@pytest.fixture(scope="module")
def advice() -> Advice:
    return recommend(tools_for(QuadraticSessions(QuadraticSettings())), REQUEST)


def test_steps_to_target_are_the_model_s(advice: Advice) -> None:
    assert len(advice.results) >= 4
    for result in advice.results:
        truth = TRUE_STEPS[result.batch_size]
        assert result.steps is not None and result.steps_interval is not None and truth is not None
        assert truth <= 1.001 * result.steps <= 1.25 * truth
        assert result.steps_interval.low <= truth


def test_the_critical_batch_size_is_the_model_s(advice: Advice) -> None:
    truth = true_critical_batch_size()
    critical = advice.fit.critical_batch_size
    assert advice.fit.outcome is FitOutcome.OK and critical is not None
    assert critical.low <= truth <= critical.high
    assert critical.estimate == pytest.approx(truth, rel=0.25)


def test_the_recommended_batch_size_is_among_the_fastest(advice: Advice) -> None:
    times = {size: steps * (1e-3 + 1e-5 * size) for size, steps in TRUE_STEPS.items() if steps}
    assert advice.recommendation is not None
    assert times[advice.recommendation.batch_size] <= 1.1 * min(times.values())
    assert advice.answers.fastest_per_example == advice.answers.largest_feasible == 4096


def test_time_is_time_per_step_times_steps(advice: Advice) -> None:
    for cost in advice.costs:
        product = cost.steps.estimate * cost.time_per_step_s.estimate
        assert cost.time_to_target_s.estimate == pytest.approx(product)
        assert cost.device_hours.estimate == pytest.approx(product / 3600)


def test_intervals_cover_the_truth_over_seeds() -> None:
    truth, covered = true_critical_batch_size(), []
    for seed in range(5):
        tools = tools_for(QuadraticSessions(QuadraticSettings(log_noise=0.12)))
        fit = recommend(tools, replace(REQUEST, seed=100 * seed)).fit
        assert fit.critical_batch_size is not None
        covered.append(fit.critical_batch_size.low <= truth <= fit.critical_batch_size.high)
    assert np.mean(covered) >= 0.8


def test_the_search_needs_few_trials_and_measures_with_fresh_seeds() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings(log_noise=0.1)))
    answer = recommend(tools, REQUEST)
    assert all(result.trials <= 12 for result in answer.results)
    for study in tools.store.studies():
        trials = tools.store.trials(study.name)
        selected = {trial.plan.seed for trial in trials if trial.plan.purpose is TrialPurpose.SELECT}
        fresh = {trial.plan.seed for trial in trials if trial.plan.purpose is TrialPurpose.MEASURE}
        assert selected == {0} and fresh in ({1}, {1, 2}, {1, 2, 3})


def test_a_second_run_trains_nothing_and_answers_the_same() -> None:
    sessions = WatchedSessions(QuadraticSettings(log_noise=0.1))
    tools = tools_for(sessions)
    first = recommend(tools, SHORT)
    calls = sessions.calls[0]
    assert recommend(tools, SHORT) == first
    assert sessions.calls[0] == calls


def test_more_seeds_keep_the_trials_and_add_to_them() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings(log_noise=0.1)))
    first = recommend(tools, SHORT)
    more = recommend(tools, replace(SHORT, seeds=3))
    added = more.spent.trials - first.spent.trials
    assert 0 < added <= 3 * len(first.results)
    for before, after in zip(first.results, more.results, strict=True):
        seeds = len(before.observations)
        assert after.observations[:seeds] == before.observations
        assert len(after.observations) == 3


@pytest.mark.parametrize("call", [3, 60, 300])
def test_an_interrupted_search_ends_as_an_uninterrupted_one(call: int) -> None:
    def before(_batch_size: int, number: int) -> None:
        if number == call:
            raise KeyboardInterrupt

    settings = QuadraticSettings(log_noise=0.1)
    sessions = WatchedSessions(settings, before)
    tools = tools_for(sessions)
    with pytest.raises(KeyboardInterrupt):
        recommend(tools, SHORT)
    states = {trial.state for study in tools.store.studies() for trial in tools.store.trials(study.name)}
    assert TrialState.RUNNING not in states
    resumed = recommend(tools, SHORT)
    whole = recommend(tools_for(QuadraticSessions(settings)), SHORT)
    assert resumed.fit == whole.fit and resumed.recommendation == whole.recommendation


def test_an_allowance_ends_the_search_and_a_larger_one_goes_on() -> None:
    settings = QuadraticSettings(log_noise=0.1)
    whole = recommend(tools_for(QuadraticSessions(settings)), SHORT)
    tools = tools_for(QuadraticSessions(settings))
    allowed = round(0.7 * whole.spent.examples)
    cut = recommend(tools, replace(SHORT, spend_examples=allowed))
    assert cut.recommendation is not None and len(cut.results) < len(whole.results)
    assert any("The allowance is used up" in caveat for caveat in cut.recommendation.caveats)
    assert 0.5 * allowed < cut.spent.examples <= 1.1 * allowed
    assert recommend(tools, SHORT).fit == whole.fit


def test_an_allowance_too_small_for_any_answer_says_so() -> None:
    with pytest.raises(InconclusiveError, match=r"allowance is used up: .*--spend-examples or --spend-time"):
        recommend(tools_for(QuadraticSessions(QuadraticSettings())), replace(SHORT, spend_time_s=0.01))


def test_the_noise_scale_is_a_hint_that_a_second_run_takes_over(advice: Advice) -> None:
    assert advice.noise_scale is not None and advice.noise_scale.interval is not None
    assert advice.spent.examples > advice.noise_scale.examples > 0


def test_a_session_that_fails_costs_one_trial() -> None:
    failed: list[int] = []

    def before(batch_size: int, number: int) -> None:
        if number > 300 and not failed:
            failed.append(batch_size)
            raise SessionError("the process died", "exit status -11")

    tools = tools_for(WatchedSessions(QuadraticSettings(), before))
    answer = recommend(tools, SHORT)
    assert answer.recommendation is not None and failed
    trials = [trial for study in tools.store.studies() for trial in tools.store.trials(study.name)]
    reasons = [trial.reason for trial in trials if trial.state is TrialState.FAILED]
    assert reasons == ["the process died"]
    whole = recommend(tools_for(QuadraticSessions(QuadraticSettings())), SHORT)
    assert answer.fit == whole.fit and answer.recommendation == whole.recommendation


def test_training_that_always_fails_is_told_and_not_tried_for_ever() -> None:
    def before(_batch_size: int, number: int) -> None:
        if number > 300:
            raise SessionError("the process died")

    with pytest.raises(SessionError, match=r"failed twice.*the process died"):
        recommend(tools_for(WatchedSessions(QuadraticSettings(), before)), SHORT)


def test_a_batch_size_that_cannot_be_trained_is_left_out_with_a_caveat() -> None:
    def before(batch_size: int, number: int) -> None:
        if batch_size == 64 and number > 100:
            raise SessionError("the process died")

    answer = recommend(tools_for(WatchedSessions(QuadraticSettings(), before)), SHORT)
    assert 64 not in [result.batch_size for result in answer.results] and len(answer.results) >= 3
    assert answer.recommendation is not None
    assert "Batch size 64 could not be trained and was left out." in answer.recommendation.caveats


def test_momentum_is_retuned_where_asked() -> None:
    answer = recommend(
        tools_for(QuadraticSessions(QuadraticSettings(momentum=0.5))),
        replace(SHORT, tune=("learning_rate", "momentum"), trials_per_batch_size=30),
    )
    steps = {result.batch_size: result.steps for result in answer.results}
    assert any(result.best and result.best["momentum"] > 0.6 for result in answer.results)
    assert steps[256] is not None and TRUE_STEPS[256] is not None
    assert steps[256] < TRUE_STEPS[256]


def test_a_higher_price_changes_money_alone() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings()))
    cheap, dear = (
        recommend(tools, replace(SHORT, objective=Objective.COST, prices=Prices(price)))
        for price in (1.0, 3.0)
    )
    assert cheap.recommendation and dear.recommendation
    assert cheap.recommendation.batch_size == dear.recommendation.batch_size
    assert cheap.recommendation.money and dear.recommendation.money
    assert dear.recommendation.money.estimate == pytest.approx(3 * cheap.recommendation.money.estimate)


def test_every_listed_batch_size_is_tried() -> None:
    request = replace(SHORT, batch_sizes=BatchSizes(listed=(24, 100, 300)))
    answer = recommend(tools_for(QuadraticSessions(QuadraticSettings())), request)
    assert [result.batch_size for result in answer.results] == [24, 100, 300]


def test_the_plan_trains_nothing_and_bounds_what_is_spent() -> None:
    sessions = WatchedSessions(QuadraticSettings())
    tools = tools_for(sessions)
    expected = plan(tools, SHORT)
    assert tools.store.studies() == []
    answer = recommend(tools, SHORT)
    assert answer.spent.trials <= expected.trials and answer.spent.examples <= expected.examples
    assert plan(tools, SHORT).already_recorded_trials == answer.spent.trials


def test_a_target_that_is_never_reached_says_what_was_found() -> None:
    settings = QuadraticSettings(target=Target("loss", at_most=1e-9))
    tools = tools_for(QuadraticSessions(settings))
    with pytest.raises(InconclusiveError, match=r"No batch size reached the target.*the best was \d"):
        recommend(tools, replace(SHORT, max_examples_per_trial=1000))
    assert len(tools.store.studies()) == 3


def test_a_target_that_is_met_from_the_start_is_refused() -> None:
    settings = QuadraticSettings(target=Target("loss", at_most=100.0))
    with pytest.raises(WorkloadError, match="untrained model already meets the target"):
        recommend(tools_for(QuadraticSessions(settings)), SHORT)


def test_what_cannot_be_retuned_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"'dropout' cannot be retuned.*learning_rate"):
        recommend(tools_for(QuadraticSessions(QuadraticSettings())), replace(SHORT, tune=("dropout",)))


def test_the_search_says_what_it_may_spend_and_what_it_finds(quadratic: Tools) -> None:
    recommend(quadratic, SHORT)
    assert any(message.startswith("At most ") and "trainings" in message for message in said(quadratic))
    assert any("steps to target" in message for message in said(quadratic))


def test_real_storage_and_real_studies_give_the_same_answer(sqlite_url: str) -> None:
    settings = QuadraticSettings(log_noise=0.1)
    store, board = open_store(sqlite_url), open_board(sqlite_url)
    fakes = tools_for(QuadraticSessions(settings))
    real = replace(fakes, store=store, board=board)
    try:
        answer = recommend(real, SHORT)
        assert answer.fit == recommend(fakes, SHORT).fit
        assert recommend(real, SHORT) == answer == store.latest_advice("noisy-quadratic")
    finally:
        store.close()
        board.close()


def test_what_else_was_measured_changes_nothing() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings()))
    measure(tools, MeasureRequest(BatchSizes(listed=(17, 18, 19, 20))))
    answer = recommend(tools, SHORT)
    plain = recommend(tools_for(QuadraticSessions(QuadraticSettings())), SHORT)
    assert answer.results == plain.results


def test_the_learning_rate_is_always_retuned_unless_it_is_fixed() -> None:
    settings = QuadraticSettings(momentum=0.5)
    description = QuadraticSessions(settings).open().describe()
    assert tuned_names(description, ("momentum",)) == ["learning_rate", "momentum"]
    assert tuned_names(description, ("learning_rate", "learning_rate")) == ["learning_rate"]
    fixed = replace(settings, fixed=("learning_rate",))
    assert tuned_names(QuadraticSessions(fixed).open().describe(), ("learning_rate",)) == []


def test_a_fixed_learning_rate_is_kept_at_every_batch_size() -> None:
    settings = QuadraticSettings(learning_rate=0.2, fixed=("learning_rate",))
    answer = recommend(tools_for(QuadraticSessions(settings)), SHORT)
    assert all(result.best == {} and result.trials == 2 for result in answer.results)


def test_each_batch_size_gets_its_note(quadratic: Tools) -> None:
    answer = recommend(quadratic, SHORT)
    studies = quadratic.store.studies()
    assert len(studies) == len(answer.results)
    assert isinstance(quadratic.board, MemoryBoard)
    for study in studies:
        assert study.note and quadratic.board.studies[study.name].note == study.note


@pytest.mark.parametrize(
    ("batch_sizes", "words"),
    [(BatchSizes(5, 7), "no power of two from 5 to 7"), (BatchSizes(1_500_000), "no power of two")],
)
def test_batch_sizes_that_do_not_exist_are_told(
    batch_sizes: BatchSizes, words: str, quadratic: Tools
) -> None:
    with pytest.raises(WorkloadError, match=words):
        recommend(quadratic, replace(SHORT, batch_sizes=batch_sizes))


def test_an_optimizer_without_a_constant_learning_rate_is_refused_with_the_reason() -> None:
    description = replace(
        QuadraticSessions().open().describe(), optimizer="custom", optimizer_hyperparameters={}
    )
    with pytest.raises(WorkloadError, match="does not take a constant learning rate"):
        tuned_names(description, ())


def test_a_batch_size_that_could_not_be_measured_is_told_with_its_reason() -> None:
    def before(batch_size: int, _number: int) -> None:
        if batch_size == 128:
            raise SessionError("the layer takes 64 rows at most")

    tools = tools_for(WatchedSessions(QuadraticSettings(), before))
    answer = recommend(tools, SHORT)
    assert answer.recommendation is not None
    reason = "Batch size 128 could not be measured. the layer takes 64 rows at most"
    assert reason in answer.recommendation.caveats
    assert any("the layer takes 64 rows" in message for message in said(tools))


def test_memory_that_ran_out_is_told_with_what_was_not_tried() -> None:
    def before(batch_size: int, _number: int) -> None:
        if batch_size == 64:
            raise OutOfMemoryError("no memory is left")

    request = replace(SHORT, batch_sizes=BatchSizes(listed=(8, 16, 32, 64, 128)))
    answer = recommend(tools_for(WatchedSessions(QuadraticSettings(), before)), request)
    assert answer.recommendation is not None
    told = " ".join(answer.recommendation.caveats)
    assert "Batch size 64 could not be measured. no memory is left" in told
    assert "Batch size 128 was not tried" in told


def test_training_that_always_diverges_is_told_as_such() -> None:
    settings = QuadraticSettings(search_space={"learning_rate": Float(50.0, 1000.0, log=True)})
    with pytest.raises(InconclusiveError, match="every training diverged"):
        recommend(tools_for(QuadraticSessions(settings)), replace(SHORT, trials_per_batch_size=3))


def test_two_at_once_on_one_database_disturb_nobody(sqlite_url: str) -> None:
    fakes = tools_for(QuadraticSessions(QuadraticSettings(log_noise=0.1)))
    whole = recommend(fakes, SHORT)

    def run() -> Advice:
        store, board = open_store(sqlite_url), open_board(sqlite_url)
        try:
            return recommend(replace(fakes, store=store, board=board), SHORT)
        finally:
            store.close()
            board.close()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(run) for _ in range(2)]:
            assert future.result().fit == whole.fit
