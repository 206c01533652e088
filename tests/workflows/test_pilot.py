from dataclasses import replace

import pytest

from advisor.analysis.curves import crossing
from advisor.errors import InconclusiveError, WorkloadError
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.records.search_space import Float
from advisor.records.target import Target
from advisor.records.trials import StudyKind, TrialPurpose
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.workflows.objective import objective
from advisor.workflows.pilot import EPOCHS, pilot, plan
from tests.fakes.memory_board import MemoryBoard
from tests.workflows.conftest import WatchedSessions, tools_for

SETTINGS = QuadraticSettings(log_noise=0.15, evaluation_noise=0.02, training_examples=20_000)
REQUEST = RecommendRequest(batch_sizes=BatchSizes(16, 256))


@pytest.mark.parametrize("seed", [0, 100])
def test_every_fresh_seed_reaches_the_proposed_target_well_before_the_end(seed: int) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    found = pilot(tools, replace(REQUEST, seed=seed))
    assert (found.batch_size, found.max_steps) == (64, -(-EPOCHS * 20_000 // 64))
    (study,) = tools.store.studies()
    trials = tools.store.trials(study.name)
    fresh = [trial for trial in trials if trial.plan.purpose is TrialPurpose.MEASURE]
    assert {trial.plan.seed for trial in fresh} == {seed + 1, seed + 2, seed + 3}
    for trial, row in zip(fresh, found.seeds, strict=True):
        steps = crossing(trial.curve, found.target).steps
        assert steps == row.steps and steps <= 0.8 * found.max_steps
        assert row.time_s == pytest.approx(steps * (1e-3 + 1e-5 * 64))
    # Not the easy side either: the slowest seed needs more than half of the training.
    assert max(row.steps for row in found.seeds) > 0.5 * found.max_steps


def test_the_learning_rate_is_tuned_before_it_is_measured() -> None:
    poor = replace(SETTINGS, learning_rate=1e-3)
    found = pilot(tools_for(QuadraticSessions(poor)), REQUEST)
    usual = pilot(tools_for(QuadraticSessions(SETTINGS)), REQUEST)
    assert float(found.best["learning_rate"]) > 0.02
    assert found.target.value == pytest.approx(usual.target.value, rel=0.3)


def test_a_second_run_trains_nothing_and_the_study_stands_on_the_board() -> None:
    sessions = WatchedSessions(SETTINGS)
    tools = tools_for(sessions)
    first, calls = pilot(tools, REQUEST), sessions.calls[0]
    assert pilot(tools, REQUEST) == first and sessions.calls[0] == calls
    (study,) = tools.store.studies()
    assert study.kind is StudyKind.PILOT and str(first.target) in study.note
    assert isinstance(tools.board, MemoryBoard)
    assert len(tools.board.studies[study.name].trials) == first.spent.trials


def test_the_plan_trains_nothing_and_bounds_what_is_spent() -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    before = plan(tools, REQUEST)
    assert tools.store.studies() == [] and before.expected is not None
    spent = pilot(tools, REQUEST).spent
    assert spent.trials <= before.trials and spent.examples <= before.examples
    assert before.expected.examples / 2 <= spent.examples <= 2 * before.expected.examples


def test_nothing_is_proposed_where_every_training_diverges() -> None:
    settings = replace(SETTINGS, search_space={"learning_rate": Float(50.0, 1000.0, log=True)})
    with pytest.raises(InconclusiveError, match="every training at batch size 64 diverged"):
        pilot(tools_for(QuadraticSessions(settings)), replace(REQUEST, trials_per_batch_size=3))


def test_nothing_is_proposed_that_the_untrained_model_has_already() -> None:
    settings = replace(SETTINGS, search_space={"learning_rate": Float(1e-9, 1e-8, log=True)})
    with pytest.raises(InconclusiveError, match="untrained model has validation loss"):
        pilot(tools_for(QuadraticSessions(settings)), replace(REQUEST, trials_per_batch_size=2))


def test_accuracy_comes_before_loss_and_others_need_a_direction() -> None:
    described = replace(
        QuadraticSessions().open().describe(),
        metrics=("loss", "accuracy", "f1"),
        initial_metrics={"loss": 2.3, "accuracy": 0.1, "f1": 0.05},
    )
    assert objective(described, None, ("accuracy", "loss")) == Target("accuracy", at_least=0.1)
    assert objective(described, "loss", ("accuracy",)) == Target("loss", at_most=2.3)
    assert objective(described, "f1:at_least", ()) == Target("f1", at_least=0.05)
    with pytest.raises(WorkloadError, match="never guessed: write --metric f1:at_least"):
        objective(described, "f1", ())
    with pytest.raises(WorkloadError, match="reports loss, accuracy, f1"):
        objective(described, "auc", ())
    targeted = replace(described, target=Target("f1", at_least=0.9))
    assert objective(targeted, "f1", ()) == Target("f1", at_least=0.05)
