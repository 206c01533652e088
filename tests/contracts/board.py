"""What every StudyBoard promises; a test class of each implementation inherits these."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from advisor.errors import StorageError
from advisor.records.search_space import Categorical, Float, HyperparameterValue, Int, SearchSpace
from advisor.records.trials import StudyKind, Trial, TrialState
from advisor.workflows.ports import StudyBoard
from tests.contracts import samples

SPACE: SearchSpace = {
    "learning_rate": Float(1e-4, 10.0, default=0.05, log=True),
    "momentum": Float(0.5, 0.999, default=0.9, log_one_minus=True),
    "dropout": Float(0.0, 0.5, default=0.0),
    "units": Int(16, 256, default=64, log=True),
    "depth": Int(1, 3),
    "activation": Categorical(("relu", "tanh"), default="relu"),
}
VALUES: Mapping[str, HyperparameterValue] = {
    "learning_rate": 0.1,
    "momentum": 0.9,
    "dropout": 0.25,
    "units": 64,
    "depth": 2,
    "activation": "tanh",
}
NAME = samples.study().name
ENDS = [state for state in TrialState if state is not TrialState.RUNNING]


class StudyBoardContract:
    """Needs a fixture ``board`` that gives one without studies."""

    def test_trials_are_numbered_from_zero(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        assert [board.ask(NAME)[0], board.ask_at(NAME, VALUES), board.ask(NAME)[0]] == [0, 1, 2]

    def test_proposals_lie_in_the_search_space(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        for _ in range(12):
            number, values = board.ask(NAME)
            assert values.keys() == SPACE.keys()
            _assert_inside(values)
            board.tell(NAME, number, TrialState.COMPLETE, float(number), "ran")

    def test_proposals_differ(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        proposals = []
        for _ in range(6):
            number, values = board.ask(NAME)
            board.tell(NAME, number, TrialState.COMPLETE, 0.5, "ran")
            proposals.append(values["learning_rate"])
        assert len(set(proposals)) == 6

    def test_the_seed_decides_proposals(self, board: StudyBoard) -> None:
        first = []
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            board.open(samples.named(name), SPACE, seed)
            first.append(board.ask(name)[1])
        assert first[0] == first[1] != first[2]

    def test_an_empty_search_space_has_one_point(self, board: StudyBoard) -> None:
        board.open(samples.study(), {}, 0)
        assert board.ask(NAME) == (0, {})
        assert board.ask_at(NAME, {"learning_rate": 0.1}) == 1

    def test_hyperparameters_that_are_not_searched_may_be_given(self, board: StudyBoard) -> None:
        board.open(samples.study(), {"learning_rate": SPACE["learning_rate"]}, 0)
        assert board.ask_at(NAME, VALUES) == 0

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("learning_rate", 20.0),
            ("learning_rate", math.nan),
            ("learning_rate", "fast"),
            ("momentum", 0.9999),
            ("units", 300),
            ("depth", 1.5),
            ("activation", "gelu"),
        ],
    )
    def test_a_value_outside_of_its_range_is_refused(
        self, board: StudyBoard, name: str, value: HyperparameterValue
    ) -> None:
        board.open(samples.study(), SPACE, 0)
        with pytest.raises(StorageError, match=f"{name} ?= ?{value}"):
            board.ask_at(NAME, {**VALUES, name: value})
        assert board.ask(NAME)[0] == 0

    def test_a_searched_hyperparameter_that_is_not_given_is_refused(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        with pytest.raises(StorageError, match="momentum"):
            board.ask_at(NAME, {name: value for name, value in VALUES.items() if name != "momentum"})

    def test_the_ends_of_a_range_belong_to_it(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        ends = {"learning_rate": (1e-4, 10.0), "momentum": (0.5, 0.999), "units": (16, 256)}
        for name, pair in ends.items():
            for value in pair:
                board.ask_at(NAME, {**VALUES, name: value})

    @pytest.mark.parametrize("state", ENDS)
    def test_a_trial_ends_once(self, board: StudyBoard, state: TrialState) -> None:
        board.open(samples.study(), SPACE, 0)
        number, _ = board.ask(NAME)
        board.report(NAME, number, 10, 0.5)
        board.report(NAME, number, 20, math.nan)
        board.tell(NAME, number, state, 0.5, "because")
        for other in ENDS:
            if _optuna_state(other) != _optuna_state(state):
                with pytest.raises(StorageError, match=r"Trial 0 .* not running"):
                    board.tell(NAME, number, other, 0.5, "again")
        with pytest.raises(StorageError, match="running"):
            board.tell(NAME, number, TrialState.RUNNING, 0.5, "again")
        with pytest.raises(StorageError, match=r"Trial 0 .* not running"):
            board.report(NAME, number, 30, 0.5)

    @pytest.mark.parametrize("state", ENDS)
    def test_an_ended_trial_may_be_told_again(self, board: StudyBoard, state: TrialState) -> None:
        board.open(samples.study(), SPACE, 0)
        board.ask(NAME)
        for other in ENDS:
            if _optuna_state(other) == _optuna_state(state):
                board.tell(NAME, 0, state, 0.5, "because")
                board.tell(NAME, 0, other, 0.25, "told by a run that went on")
        assert board.ask(NAME)[0] == 1

    def test_one_without_a_value_may_be_told_again(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        board.ask(NAME)
        for value in (None, math.nan):
            board.tell(NAME, 0, TrialState.COMPLETE, value, "did not reach the target")
        with pytest.raises(StorageError, match=r"Trial 0 .* not running"):
            board.tell(NAME, 0, TrialState.COMPLETE, 0.5, "reached it")

    def test_what_an_interrupted_trial_was_to_try_is_proposed_again(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        for number in range(3):
            board.ask(NAME)
            board.tell(NAME, number, TrialState.COMPLETE, float(number), "ran")
        _, begun = board.ask(NAME)
        board.report(NAME, 3, 10, 0.5)
        board.tell(NAME, 3, TrialState.INTERRUPTED, None, "interrupted")
        assert board.ask(NAME) == (4, begun)

    @pytest.mark.parametrize("state", [state for state in ENDS if state is not TrialState.INTERRUPTED])
    def test_what_ended_by_itself_is_not_proposed_again(self, board: StudyBoard, state: TrialState) -> None:
        board.open(samples.study(), SPACE, 0)
        _, begun = board.ask(NAME)
        board.tell(NAME, 0, state, 0.5, "because")
        assert board.ask(NAME)[1] != begun

    @pytest.mark.parametrize("value", [None, math.nan, math.inf])
    def test_a_trial_without_a_finite_value_ends_all_the_same(
        self, board: StudyBoard, value: float | None
    ) -> None:
        board.open(samples.study(), SPACE, 0)
        board.ask(NAME)
        board.tell(NAME, 0, TrialState.COMPLETE, value, "did not reach the target")
        assert board.ask(NAME)[0] == 1

    def test_a_trial_does_not_end_as_running(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        board.ask(NAME)
        with pytest.raises(StorageError, match="running"):
            board.tell(NAME, 0, TrialState.RUNNING, None, "")

    @pytest.mark.parametrize("state", ENDS)
    def test_a_finished_trial_is_added_with_the_next_number(
        self, board: StudyBoard, state: TrialState
    ) -> None:
        board.open(samples.study(StudyKind.STEPS_TO_TARGET), SPACE, 0)
        name = samples.study(StudyKind.STEPS_TO_TARGET).name
        curve = (samples.point(10), samples.point(20))
        for number in (5, 6):
            board.add(name, Trial(number, 64, samples.plan(), state, "because", curve), 18.5)
        board.add(name, Trial(7, 64, samples.plan(20.0), state, "too fast", ()), None)
        assert board.ask(name)[0] == 3

    def test_a_finished_trial_is_added_once(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        trial = Trial(0, 64, samples.plan(), TrialState.COMPLETE, "ran", (samples.point(10),))
        assert board.ask(NAME)[0] == 0
        other = replace(trial, number=7)
        # Number 0 is the board's own, so that trial is there already; 7 is added once.
        for added, following in ((trial, 1), (other, 3), (other, 4)):
            board.add(NAME, added, 0.5)
            assert board.ask(NAME)[0] == following

    def test_opening_again_continues(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        board.ask(NAME)
        board.open(samples.study(), SPACE, 0)
        assert board.ask(NAME)[0] == 1

    def test_a_default_may_change(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        board.open(samples.study(), {**SPACE, "depth": Int(1, 3, default=2)}, 0)

    @pytest.mark.parametrize(
        ("name", "changed"),
        [
            ("learning_rate", Float(1e-4, 1.0, log=True)),
            ("learning_rate", Float(1e-4, 10.0)),
            ("momentum", Float(0.5, 0.999)),
            ("depth", Int(1, 4)),
            ("activation", Categorical(("relu", "gelu"))),
            ("another", Float(0.0, 1.0)),
        ],
    )
    def test_a_changed_search_space_is_refused(
        self, board: StudyBoard, name: str, changed: Float | Int | Categorical
    ) -> None:
        board.open(samples.study(), SPACE, 0)
        with pytest.raises(StorageError, match=f"{name} was .* and is now "):
            board.open(samples.study(), {**SPACE, name: changed}, 0)

    def test_a_hyperparameter_that_is_no_longer_searched_is_refused(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        with pytest.raises(StorageError, match="momentum was"):
            board.open(samples.study(), {name: d for name, d in SPACE.items() if name != "momentum"}, 0)

    def test_a_note_can_be_replaced(self, board: StudyBoard) -> None:
        board.open(samples.study(), SPACE, 0)
        for note in ("first", "a long one: " + "word " * 1000, ""):
            board.set_note(NAME, note)

    def test_a_study_that_is_not_open_is_named(self, board: StudyBoard) -> None:
        for call in (
            lambda: board.ask("nowhere"),
            lambda: board.ask_at("nowhere", {}),
            lambda: board.report("nowhere", 0, 1, 0.5),
            lambda: board.tell("nowhere", 0, TrialState.COMPLETE, 0.5, ""),
            lambda: board.set_note("nowhere", "note"),
        ):
            with pytest.raises(StorageError, match="nowhere"):
                call()
        board.open(samples.study(), SPACE, 0)
        with pytest.raises(StorageError, match="Trial 9"):
            board.report(NAME, 9, 1, 0.5)


def _optuna_state(state: TrialState) -> TrialState:
    """Return one state for those that Optuna does not tell apart."""
    same = {TrialState.INTERRUPTED: TrialState.FAILED, TrialState.STOPPED: TrialState.INFEASIBLE}
    return same.get(state, state)


def _assert_inside(values: Mapping[str, HyperparameterValue]) -> None:
    for name, distribution in SPACE.items():
        value = values[name]
        if isinstance(distribution, Categorical):
            assert value in distribution.choices
        else:
            assert not isinstance(value, str)
            assert distribution.low <= value <= distribution.high
            assert isinstance(value, int if isinstance(distribution, Int) else float)
