"""What the board leaves in Optuna's own tables, and what its sampler makes of it."""

import math
import sqlite3
import statistics
from contextlib import closing
from dataclasses import replace
from random import Random

import optuna
import pytest

from advisor.errors import StorageError
from advisor.records.search_space import Categorical, Float, Int, SearchSpace
from advisor.records.target import Target
from advisor.records.trials import StudyKind, Trial, TrialState
from advisor.tuning.board import OptunaBoard, open_board
from tests.contracts import samples
from tests.contracts.board import SPACE, VALUES
from tests.tuning.shared import SharedDatabase

NAME = samples.study().name
RATE: SearchSpace = {"learning_rate": Float(1e-5, 10.0, log=True)}


@pytest.fixture
def board(empty: SharedDatabase) -> OptunaBoard:
    return empty.board


@pytest.mark.parametrize(
    ("kind", "target", "direction"),
    [
        (StudyKind.TUNE, Target("accuracy", at_least=0.97), "MAXIMIZE"),
        (StudyKind.TUNE, Target("loss", at_most=0.1), "MINIMIZE"),
        (StudyKind.STEPS_TO_TARGET, Target("accuracy", at_least=0.97), "MINIMIZE"),
    ],
)
def test_the_direction_is_that_of_the_value(
    board: OptunaBoard, shared: SharedDatabase, kind: StudyKind, target: Target, direction: str
) -> None:
    board.open(samples.named(NAME, kind=kind, target=target), SPACE, 0)
    assert shared.study(NAME).direction.name == direction


def test_a_study_says_what_it_is(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(), SPACE, 0)
    said = shared.study(NAME).user_attrs
    assert said["workload"] == "digits"
    assert said["batch_size"] == 64
    assert said["command"] == "advisor tune --batch 64"
    assert said["configuration"]["devices"] == 2
    assert said["search_space"]["momentum"] == "0.5 to 0.999 (log_one_minus)"


def test_values_are_kept_exactly_and_on_their_scales(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(), SPACE, 0)
    board.ask_at(NAME, {**VALUES, "epochs": 3, "schedule": "none"})
    (trial,) = shared.study(NAME).trials
    others = {name: value for name, value in VALUES.items() if name != "momentum"}
    assert trial.params == {**others, "one_minus_momentum": 1 - 0.9}
    assert trial.user_attrs == {"epochs": 3, "schedule": "none"}
    assert trial.state.name == "RUNNING"
    momentum = trial.distributions["one_minus_momentum"]
    assert momentum == optuna.distributions.FloatDistribution(1 - 0.999, 0.5, log=True)
    assert trial.distributions["units"] == optuna.distributions.IntDistribution(16, 256, log=True)


def test_a_value_that_rounding_pushed_out_of_its_range_is_taken(
    board: OptunaBoard, shared: SharedDatabase
) -> None:
    board.open(samples.study(), RATE, 0)
    board.ask_at(NAME, {"learning_rate": 10.0 * (1 + 1e-12)})
    assert shared.study(NAME).trials[0].params == {"learning_rate": 10.0}


@pytest.mark.parametrize(
    ("state", "kept_state", "feasible"),
    [
        (TrialState.COMPLETE, "COMPLETE", True),
        (TrialState.INFEASIBLE, "PRUNED", False),
        (TrialState.FAILED, "FAIL", True),
        (TrialState.INTERRUPTED, "FAIL", True),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_an_end_is_kept_with_its_reason(
    board: OptunaBoard,
    shared: SharedDatabase,
    state: TrialState,
    kept_state: str,
    feasible: bool,
    added: bool,
) -> None:
    board.open(samples.study(), RATE, 0)
    curve = (samples.point(10), samples.point(20))
    if added:
        board.add(NAME, Trial(7, 64, samples.plan(0.5), state, "because", curve), 0.25)
    else:
        board.ask_at(NAME, samples.plan(0.5).hyperparameters)
        for point in curve:
            board.report(NAME, 0, point.step, point.metrics["accuracy"])
        board.tell(NAME, 0, state, 0.25, "because")
    (trial,) = shared.study(NAME).trials
    assert trial.state.name == kept_state
    assert trial.params == {"learning_rate": 0.5}
    assert trial.intermediate_values == {10: 0.5, 20: 0.5}
    assert all(violation <= 0 for violation in trial.constraints.values()) is feasible
    attributes = {"outcome": state.value, "reason": "because", "units": 64, "activation": "relu"}
    assert trial.user_attrs == {**attributes, "bias": True, **({"number": 7} if added else {})}
    assert (trial.value == 0.25) is (state is TrialState.COMPLETE)
    assert trial.datetime_complete is not None


def test_a_trial_without_a_value_is_pruned_but_feasible(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(StudyKind.STEPS_TO_TARGET), RATE, 0)
    name = samples.study(StudyKind.STEPS_TO_TARGET).name
    trial = Trial(0, 64, samples.plan(), TrialState.COMPLETE, "ran all its steps", (samples.point(10),))
    board.add(name, trial, None)
    board.ask(name)
    board.tell(name, 1, TrialState.COMPLETE, math.nan, "ran all its steps")
    study = shared.study(name)
    assert [trial.state.name for trial in study.trials] == ["PRUNED", "PRUNED"]
    assert [trial.constraints for trial in study.trials] == [{}, {}]
    assert study.trials[0].value is None


def test_diverged_values_are_shown(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(), RATE, 0)
    board.ask(NAME)
    for step, value in ((1, 2.5), (2, math.inf), (3, math.nan)):
        board.report(NAME, 0, step, value)
    shown = shared.study(NAME).trials[0].intermediate_values
    assert (shown[1], shown[2]) == (2.5, math.inf)
    assert math.isnan(shown[3])


def _objective(values: object) -> float:
    """A smooth peak at a learning rate of 0.03 and a momentum of 0.95."""
    assert isinstance(values, dict)
    rate, momentum = math.log10(values["learning_rate"] / 0.03), math.log10((1 - values["momentum"]) / 0.05)
    return -(rate**2) - momentum**2


PEAK_SPACE: SearchSpace = {**RATE, "momentum": Float(0.5, 0.999, log_one_minus=True)}


def _explore(board: OptunaBoard, name: str, trials: int, seed: int = 0) -> None:
    """Run trials at random points, as exploration hands them over."""
    random = Random(seed)
    for _ in range(trials):
        rate, rest = 10 ** random.uniform(-5, 1), 10 ** random.uniform(-3, math.log10(0.5))
        values = {"learning_rate": rate, "momentum": min(1 - rest, 0.999)}
        number = board.ask_at(name, values)
        board.tell(name, number, TrialState.COMPLETE, _objective(values), "ran")


def test_a_resumed_study_proposes_what_an_uninterrupted_one_would(empty: SharedDatabase) -> None:
    proposals = []
    for name, reopen in (("straight", False), ("resumed", True)):
        board = open_board(empty.url)
        study = samples.named(name)
        board.open(study, PEAK_SPACE, 5)
        _explore(board, name, 4)
        for _ in range(4):
            if reopen:
                board.close()
                board = open_board(empty.url)
                board.open(study, PEAK_SPACE, 5)
            number, values = board.ask(name)
            proposals.append(dict(values))
            board.tell(name, number, TrialState.COMPLETE, _objective(values), "ran")
        board.close()
    assert proposals[:4] == proposals[4:]


def test_a_study_interrupted_inside_a_trial_proposes_what_an_uninterrupted_one_would(
    empty: SharedDatabase,
) -> None:
    proposals = []
    for name, interrupted in (("straight", False), ("interrupted", True)):
        board = open_board(empty.url)
        study = samples.named(name)
        board.open(study, PEAK_SPACE, 5)
        _explore(board, name, 4)
        for _ in range(4):
            if interrupted:
                number, values = board.ask(name)
                board.report(name, number, 10, _objective(values))
                board.close()
                board = open_board(empty.url)
                board.open(study, PEAK_SPACE, 5)
                board.tell(name, number, TrialState.INTERRUPTED, None, "interrupted")
            number, values = board.ask(name)
            proposals.append(dict(values))
            board.tell(name, number, TrialState.COMPLETE, _objective(values), "ran")
        board.close()
    assert len({values["learning_rate"] for values in proposals[:4]}) == 4
    assert proposals[:4] == proposals[4:]


def test_telling_and_adding_again_changes_nothing(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(), RATE, 0)
    board.ask_at(NAME, {"learning_rate": 0.5})
    board.tell(NAME, 0, TrialState.COMPLETE, 0.25, "ran")
    trial = Trial(7, 64, samples.plan(0.5), TrialState.INFEASIBLE, "diverged", (samples.point(10),))
    board.add(NAME, trial, None)
    before = shared.study(NAME).trials
    board.tell(NAME, 0, TrialState.COMPLETE, 0.75, "ran longer")
    board.tell(NAME, 1, TrialState.INFEASIBLE, None, "diverged again")
    board.add(NAME, replace(trial, state=TrialState.COMPLETE, reason="ran"), 0.5)
    assert shared.study(NAME).trials == before


def test_proposals_exploit_what_was_found(board: OptunaBoard) -> None:
    board.open(samples.study(), PEAK_SPACE, 1)
    _explore(board, NAME, 12, seed=1)
    distances = []
    for _ in range(24):
        number, values = board.ask(NAME)
        board.tell(NAME, number, TrialState.COMPLETE, _objective(values), "ran")
        distances.append(-_objective(values))
    random = Random(0)
    blind = [random.uniform(-3.5, 2.5) ** 2 + random.uniform(-1.7, 1.0) ** 2 for _ in range(1000)]
    assert statistics.median(distances[12:]) < 0.5 * statistics.median(blind)


def test_proposals_go_to_a_cliff_and_not_beyond(board: OptunaBoard) -> None:
    # The best rate lies beside a cliff: everything above 0.1 diverges. Told as failed, nine of ten would.
    board.open(samples.study(), RATE, 1)
    random = Random(1)
    for _ in range(16):
        rate = 10 ** random.uniform(-5, 1)
        _tell_cliff(board, board.ask_at(NAME, {"learning_rate": rate}), rate)
    asked = []
    for _ in range(24):
        number, values = board.ask(NAME)
        asked.append(float(values["learning_rate"]))
        _tell_cliff(board, number, asked[-1])
    assert sum(rate > 0.1 for rate in asked) <= 14
    assert sum(rate > 0.01 for rate in asked) >= 17


def _tell_cliff(board: OptunaBoard, number: int, rate: float) -> None:
    diverged = rate > 0.1
    state = TrialState.INFEASIBLE if diverged else TrialState.COMPLETE
    board.tell(NAME, number, state, None if diverged else math.log10(rate), "diverged" if diverged else "ran")


def test_a_name_that_is_needed_twice_is_refused(board: OptunaBoard) -> None:
    space = {"momentum": Float(0.5, 0.9, log_one_minus=True), "one_minus_momentum": Float(0.1, 0.5)}
    with pytest.raises(StorageError, match="one_minus_momentum"):
        board.open(samples.study(), space, 0)


def test_a_name_that_only_looks_converted_is_left_alone(board: OptunaBoard) -> None:
    board.open(samples.study(), {"one_minus_x": Float(0.1, 0.2)}, 0)
    _, values = board.ask(NAME)
    assert 0.1 <= float(values["one_minus_x"]) <= 0.2


def test_a_changed_space_names_both_ranges(board: OptunaBoard) -> None:
    board.open(samples.study(), {"depth": Int(1, 3), "activation": Categorical(("relu",))}, 0)
    with pytest.raises(StorageError) as raised:
        board.open(samples.study(), {"depth": Int(1, 9), "activation": Categorical(("relu",))}, 0)
    assert "depth was whole numbers from 1 to 3 and is now whole numbers from 1 to 9" in str(raised.value)
    assert "activation" not in str(raised.value)


def test_a_space_of_two_points_never_hangs(board: OptunaBoard) -> None:
    board.open(samples.study(), {"activation": Categorical(("relu", "tanh"))}, 0)
    seen = set()
    for _ in range(12):
        number, values = board.ask(NAME)
        board.tell(NAME, number, TrialState.COMPLETE, 0.5, "ran")
        seen.add(values["activation"])
    assert seen == {"relu", "tanh"}


def test_optuna_says_nothing(
    board: OptunaBoard, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    verbosity = optuna.logging.get_verbosity()
    board.open(samples.study(), SPACE, 0)
    board.open(samples.study(), SPACE, 0)
    for state in (TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED):
        number, _ = board.ask(NAME)
        board.tell(NAME, number, state, 0.5, "because")
    board.set_note(NAME, "a note")
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == verbosity


def test_sqlite_is_set_up_for_several_processes(board: OptunaBoard, shared: SharedDatabase) -> None:
    connection = board._tables.engine.raw_connection()
    pragmas = {
        name: connection.cursor().execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "busy_timeout")
    }
    connection.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 60_000}
    board.open(samples.study(), SPACE, 0)
    board.ask(NAME)
    path = shared.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("ROLLBACK")


def test_a_study_that_was_deleted_meanwhile_is_told(board: OptunaBoard, shared: SharedDatabase) -> None:
    board.open(samples.study(), SPACE, 0)
    shared.clear()
    for call in (
        lambda: board.ask(NAME),
        lambda: board.ask_at(NAME, VALUES),
        lambda: board.set_note(NAME, "note"),
        lambda: board.report(NAME, 0, 1, 0.5),
    ):
        with pytest.raises(StorageError):
            call()
