"""Looks at a finished study: what diverged, what lies at an edge, where the best result lies."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.tuning_health import health_checks
from advisor.records.search_space import Categorical, Float, HyperparameterValue, Int, SearchSpace
from advisor.records.trials import Trial, TrialPlan, TrialPurpose, TrialState
from advisor.records.tuning import BestTrial, HealthCheck

RATE: SearchSpace = {"learning_rate": Float(1e-4, 1.0, log=True)}
VALUES: Mapping[str, HyperparameterValue] = {"learning_rate": 0.01}


def trials(values: Mapping[str, HyperparameterValue] = VALUES, **states: int) -> list[Trial]:
    """Return so many trials in each state; those that diverged have learning rates of 0.2, 0.3 and so on."""
    made: list[Trial] = []
    for state, how_many in states.items():
        for index in range(how_many):
            diverged = state == "infeasible" and "learning_rate" in values
            own = {**values, "learning_rate": (index + 2) / 10} if diverged else values
            plan = TrialPlan(own, 0, TrialPurpose.SELECT, 100)
            made.append(Trial(len(made), 64, plan, TrialState(state), "", ()))
    return made


def best(step: int = 50, **values: HyperparameterValue) -> BestTrial:
    return BestTrial(3, {**VALUES, **values}, 0.1, step, None)


def checks(
    found: BestTrial | None = None, space: SearchSpace = RATE, steps: int = 100
) -> dict[str, list[HealthCheck]]:
    made = health_checks(trials(complete=3), found, space, steps)
    return {
        name: [check for check in made if check.check == name] for name in ("infeasible", "edge", "steps")
    }


@given(st.integers(0, 30), st.integers(0, 30))
def test_many_diverged_trials_are_a_warning(complete: int, infeasible: int) -> None:
    (check,) = health_checks(trials(complete=complete, infeasible=infeasible), None, RATE, 100)
    assert check.check == "infeasible"
    assert check.outcome == ("warning" if infeasible > (complete + infeasible) / 4 else "ok")
    assert check.sentence.startswith(f"{infeasible} of {complete + infeasible} trials diverged")


def test_a_warning_names_where_divergence_begins() -> None:
    (check,) = health_checks(trials(complete=2, infeasible=3), None, RATE, 100)
    assert check.sentence == (
        "3 of 5 trials diverged, the lowest at learning rate 0.200: lower the upper end of the learning rate."
    )


def test_where_no_learning_rate_is_searched_none_is_named() -> None:
    (check,) = health_checks(trials({"units": 4}, infeasible=3), None, {"units": Int(1, 9)}, 100)
    assert check.sentence == "3 of 3 trials diverged: narrow the search space."


def test_what_ended_otherwise_is_no_divergence() -> None:
    made = trials(complete=9, infeasible=3, failed=5, interrupted=7, running=1)
    (check,) = health_checks(made, None, RATE, 100)
    assert (check.outcome, check.sentence) == ("ok", "3 of 12 trials diverged.")


def test_a_study_without_a_best_trial_says_nothing_of_it() -> None:
    assert [name for name, found in checks().items() if found] == ["infeasible"]
    assert health_checks((), None, {}, 100)[0].outcome == "ok"


@pytest.mark.parametrize(
    ("range_", "at_lower", "inside", "at_upper"),
    [
        (Float(0.0, 1.0), (0.0, 0.04), (0.06, 0.5, 0.94), (0.96, 1.0)),
        (Float(1e-4, 1.0, log=True), (1e-4, 1.4e-4), (1.6e-4, 0.01, 0.62), (0.64, 1.0)),
        (Float(0.5, 0.999, log_one_minus=True), (0.5, 0.6), (0.65, 0.9, 0.998), (0.9988, 0.999)),
        (Int(1, 9), (1,), (2, 5, 8), (9,)),
        (Int(16, 256, log=True), (16, 18), (19, 64, 220), (230, 256)),
        (Int(1, 3), (1,), (2,), (3,)),
    ],
)
def test_edges_are_found_on_the_axis_of_the_search(
    range_: Float | Int, at_lower: tuple[float, ...], inside: tuple[float, ...], at_upper: tuple[float, ...]
) -> None:
    for end, values in (("lower", at_lower), (None, inside), ("upper", at_upper)):
        for value in values:
            (check,) = checks(best(x_y=value), {**RATE, "x_y": range_})["edge"]
            assert check.outcome == ("warning" if end else "ok")
            assert (f"lies at the {end} end of its range" in check.sentence) is (end is not None)
            assert ("The best x y, " in check.sentence) is (end is not None)


@given(st.floats(0, 1), st.sampled_from(["linear", "log", "log_one_minus"]))
def test_an_edge_is_a_share_of_the_axis_whatever_its_scale(share: float, scale: str) -> None:
    ranges = {
        "linear": (Float(-3.0, 5.0), -3 + 8 * share),
        "log": (Float(1e-6, 1e2, log=True), 10 ** (-6 + 8 * share)),
        "log_one_minus": (Float(0.9, 0.9999, log_one_minus=True), 1 - 10 ** (-1 - 3 * share)),
    }
    range_, value = ranges[scale]
    (check,) = checks(best(x=value), {"x": range_})["edge"]
    if min(abs(share - 0.05), abs(share - 0.95)) > 1e-6:
        assert (check.outcome == "ok") is (0.05 < share < 0.95)


def test_every_edge_is_told() -> None:
    space: SearchSpace = {"learning_rate": Float(1e-4, 1.0, log=True), "dropout": Float(0.0, 0.5)}
    found = checks(best(learning_rate=0.9, dropout=0.0), space)["edge"]
    assert [check.outcome for check in found] == ["warning", "warning"]
    assert found[0].sentence == (
        "The best learning rate, 0.900, lies at the upper end of its range: widen it there, if values beyond "
        "make sense."
    )
    assert "The best dropout, 0, lies at the lower end" in found[1].sentence


@pytest.mark.parametrize("value", [1e-9, 0.0, -1.0, 2.0, math.inf])
def test_a_value_outside_of_its_range_lies_at_its_end(value: float) -> None:
    (check,) = checks(best(learning_rate=value))["edge"]
    assert ("upper" if value > 1 else "lower") in check.sentence


@pytest.mark.parametrize(
    ("space", "value"),
    [
        ({"x": Categorical(("relu", "tanh"))}, "relu"),
        ({"x": Int(4, 4)}, 4),
        ({"x": Float(0.0, 1.0)}, "relu"),
        ({"another": Float(0.0, 1.0)}, 0.0),
        ({}, 0.0),
    ],
)
def test_what_has_no_edge_lies_inside(space: SearchSpace, value: HyperparameterValue) -> None:
    (check,) = checks(best(x=value), space)["edge"]
    assert (check.outcome, check.sentence) == ("ok", "The best trial lies inside the search space.")


@pytest.mark.parametrize(
    ("step", "outcome", "said"),
    [
        (1, "warning", "at step 1 of 1,000, in the first 10 %: fewer steps"),
        (100, "warning", "first 10 %"),
        (101, "ok", "at step 101 of 1,000."),
        (750, "ok", "at step 750 of 1,000."),
        (751, "warning", "last 25 %: try longer"),
        (1000, "warning", "at step 1,000 of 1,000, in the last 25 %"),
    ],
)
def test_the_place_of_the_best_result_judges_the_length_of_training(
    step: int, outcome: str, said: str
) -> None:
    (check,) = checks(best(step), steps=1000)["steps"]
    assert check.outcome == outcome and said in check.sentence
