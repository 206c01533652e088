from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.errors import SessionError, StorageError, WorkloadError
from advisor.records.requests import BatchSizes, MeasureRequest, RecommendRequest, TuneRequest
from advisor.records.search_space import Categorical, Float
from advisor.records.trials import TrialState
from advisor.storage.store import open_store
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.tuning.board import open_board
from advisor.workflows.measure import measure
from advisor.workflows.report import report
from advisor.workflows.tune import looks, tune
from tests.fakes.memory_board import MemoryBoard
from tests.workflows.conftest import WatchedSessions, recommend, said, tools_for

SETTINGS = QuadraticSettings(momentum=0.5)
REQUEST = TuneRequest(64, trials=12, max_train_steps=400)


def test_a_study_finds_a_better_point_than_the_defaults(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    session = tools.sessions.open()
    session.reset(64, {}, 0)
    session.train(400)
    usual = session.evaluate("validation").metrics["loss"]
    result = tune(tools, REQUEST, tmp_path)
    assert result.best is not None and result.best.value < usual
    assert sum(result.trials.values()) == 12


def test_the_best_checkpoint_alone_is_kept_and_restores(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    best = tune(tools, REQUEST, tmp_path).best
    assert best is not None and best.checkpoint is not None
    assert [path.resolve() for path in tmp_path.rglob("*.npz")] == [Path(best.checkpoint)]
    session = tools.sessions.open()
    session.reset(64, best.hyperparameters, 0)
    session.restore(Path(best.checkpoint))
    restored = session.evaluate("validation")
    assert restored.metrics["loss"] == pytest.approx(best.value) and restored.step == best.step


def test_a_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    tune(tools, replace(REQUEST, trials=5), tmp_path)
    first = tools.store.trials(tools.store.studies()[0].name)
    result = tune(tools, REQUEST, tmp_path)
    assert sum(result.trials.values()) == 12
    later = tools.store.trials(result.study.name)
    assert [(trial.plan, trial.curve) for trial in later[:5]] == [
        (trial.plan, trial.curve) for trial in first
    ]


def test_a_stale_measurement_is_named_by_tune_and_by_the_report(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    measure(tools, MeasureRequest(BatchSizes(listed=(8,))))
    tune(tools, replace(REQUEST, trials=1), tmp_path)
    assert not any("is stale" in message for message in said(tools))
    slower = replace(tools, sessions=QuadraticSessions(replace(SETTINGS, fixed_s=2e-3)))
    tune(slower, replace(REQUEST, trials=1), tmp_path)
    assert any("is stale (configuration changed)" in message for message in said(slower))
    assert any("is stale (configuration changed)" in note for note in report(tools.store, None).notes)


def test_an_interrupted_trial_ends_on_the_board_and_in_the_store(tmp_path: Path) -> None:
    def before(_batch_size: int, number: int) -> None:
        if number == 30:
            raise KeyboardInterrupt

    tools = tools_for(WatchedSessions(SETTINGS, before))
    with pytest.raises(KeyboardInterrupt):
        tune(tools, REQUEST, tmp_path)
    (study,) = tools.store.studies()
    assert tools.store.trials(study.name)[-1].state is TrialState.INTERRUPTED
    assert isinstance(tools.board, MemoryBoard)
    assert tools.board.studies[study.name].trials[-1].state is TrialState.INTERRUPTED
    result = tune(tools, REQUEST, tmp_path)
    assert result.trials["interrupted"] == 1
    assert sum(result.trials.values()) == 12 + 1


def test_exploration_fills_the_space_and_exploitation_is_the_board_s(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    result = tune(tools, replace(REQUEST, trials=16), tmp_path)
    trials = tools.store.trials(result.study.name)
    rates = [float(trial.plan.hyperparameters["learning_rate"]) for trial in trials[:8]]
    quarters = np.digitize(np.log10(rates), np.linspace(-4, 1, 5)[1:-1])
    assert set(quarters) == {0, 1, 2, 3}


def test_what_recommend_found_is_where_tuning_starts(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    advice = recommend(
        tools, RecommendRequest(batch_sizes=BatchSizes(16, 256), seeds=1, max_examples_per_trial=10**9)
    )
    known = advice.results[0]
    assert known.best is not None and known.steps is not None
    result = tune(tools, TuneRequest(known.batch_size, trials=6), tmp_path)
    trials = tools.store.trials(result.study.name)
    assert trials[0].plan.hyperparameters["learning_rate"] == known.best["learning_rate"]
    assert trials[0].plan.max_steps == pytest.approx(3 * known.steps, rel=0.01)
    rates = [float(trial.plan.hyperparameters["learning_rate"]) for trial in trials[:3]]
    middle = float(known.best["learning_rate"])
    assert all(middle / 10.01 <= rate <= middle * 10.01 for rate in rates)


def test_another_length_is_refused(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    tune(tools, replace(REQUEST, trials=2), tmp_path)
    with pytest.raises(WorkloadError, match="max_train_steps = 400, and 500 was asked for"):
        tune(tools, replace(REQUEST, max_train_steps=500), tmp_path)
    assert sum(tune(tools, replace(REQUEST, trials=3, max_train_steps=None), tmp_path).trials.values()) == 3


def test_an_exhausted_space_ends_the_study(tmp_path: Path) -> None:
    settings = replace(SETTINGS, fixed=("momentum",), search_space={"learning_rate": Categorical((0.1, 0.2))})
    result = tune(tools_for(QuadraticSessions(settings)), replace(REQUEST, trials=100), tmp_path)
    assert sum(result.trials.values()) == 2


@pytest.mark.parametrize("batch_size", [0, -1, 1_000_001])
def test_a_batch_size_outside_the_data_is_refused(tmp_path: Path, batch_size: int) -> None:
    with pytest.raises(WorkloadError, match=f"Batch size {batch_size} cannot be trained"):
        tune(tools_for(QuadraticSessions(SETTINGS)), TuneRequest(batch_size), tmp_path)


def test_a_range_where_most_diverges_is_told(tmp_path: Path) -> None:
    settings = replace(SETTINGS, search_space={"learning_rate": Float(1.0, 1000.0, log=True)})
    result = tune(tools_for(QuadraticSessions(settings)), REQUEST, tmp_path)
    check = next(check for check in result.health if check.check == "infeasible")
    assert check.outcome == "warning" and "diverged" in check.sentence
    assert result.trials["infeasible"] >= 4


def test_looks_are_regular_and_end_with_the_last_step() -> None:
    assert list(looks(100)) == list(range(4, 101, 4))
    assert list(looks(103))[-2:] == [100, 103]
    assert list(looks(3)) == [1, 2, 3]


def test_real_storage_and_real_studies(sqlite_url: str, tmp_path: Path) -> None:
    store, board = open_store(sqlite_url), open_board(sqlite_url)
    tools = replace(tools_for(QuadraticSessions(SETTINGS)), store=store, board=board)
    try:
        result = tune(tools, REQUEST, tmp_path)
        again = tune(tools, REQUEST, tmp_path)
        assert again == result and sum(result.trials.values()) == 12
        known = report(store, None)
        assert known.studies == (result,) and known.advice is None
        assert known.next == "advisor measure"
    finally:
        store.close()
        board.close()


def test_a_point_that_fails_costs_one_trial_and_not_the_study(tmp_path: Path) -> None:
    def before(_batch_size: int, number: int) -> None:
        if number == 30:
            raise SessionError("the process died")

    sessions = WatchedSessions(SETTINGS, before)
    result = tune(tools_for(sessions), REQUEST, tmp_path)
    assert result.trials["failed"] == 1 and sum(result.trials.values()) == 12
    assert sessions.opened == 2


def test_a_study_whose_trials_all_fail_is_given_up(tmp_path: Path) -> None:
    def before(_batch_size: int, _number: int) -> None:
        raise SessionError("the process died")

    tools = tools_for(WatchedSessions(SETTINGS, before))
    with pytest.raises(SessionError, match=r"last 3 trials at batch size 64 failed\. the process died"):
        tune(tools, REQUEST, tmp_path)
    (study,) = tools.store.studies()
    assert [trial.state for trial in tools.store.trials(study.name)] == [TrialState.FAILED] * 3


def test_another_artifacts_folder_does_not_lose_the_best_checkpoint(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    first = tune(tools, replace(REQUEST, trials=5), tmp_path / "one").best
    later = tune(tools, replace(REQUEST, trials=7), tmp_path / "two").best
    assert first is not None and later is not None and later.checkpoint is not None
    assert Path(later.checkpoint).exists()
    assert len(list(tmp_path.rglob("*.npz"))) == 1


def test_a_study_deleted_from_the_board_is_shown_again_and_goes_on(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    tune(tools, replace(REQUEST, trials=5), tmp_path)
    emptied = replace(tools, board=MemoryBoard())
    result = tune(emptied, REQUEST, tmp_path)
    assert sum(result.trials.values()) == 12
    assert isinstance(emptied.board, MemoryBoard)
    assert len(emptied.board.studies[result.study.name].trials) == 12


def test_a_folder_that_cannot_be_written_is_told_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    sessions = WatchedSessions(SETTINGS)
    with pytest.raises(StorageError, match=r"Checkpoints cannot be written to .*file.*--artifacts"):
        tune(tools_for(sessions), REQUEST, tmp_path / "file" / "below")
    assert sessions.calls[0] == 0


def test_a_trial_of_another_process_is_counted_and_its_point_not_repeated(tmp_path: Path) -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))

    def meanwhile(_batch_size: int, number: int) -> None:
        if number == 10:
            tune(tools, replace(REQUEST, trials=4), tmp_path)

    both = replace(tools, sessions=WatchedSessions(SETTINGS, meanwhile))
    result = tune(both, REQUEST, tmp_path)
    assert sum(result.trials.values()) == 12
    plans = [trial.plan.hyperparameters for trial in tools.store.trials(result.study.name)]
    assert len({tuple(sorted(plan.items())) for plan in plans}) == 12
    assert len(list(tmp_path.rglob("*.npz"))) == 1
