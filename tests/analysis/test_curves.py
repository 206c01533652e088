"""Steps to target are bracketed and interpolated; divergence and the best checkpoint are seen."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.curves import best_point, crossing, diverged, evaluation_steps
from advisor.records.scaling import Crossing
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

LOSS = Target("loss", at_most=0.5)
ACCURACY = Target("accuracy", at_least=0.9)


def curve(values: dict[int, float], metric: str = "loss") -> list[CurvePoint]:
    return [CurvePoint(step, {metric: value}, value, 0.1, 0.01) for step, value in values.items()]


def test_interpolates_between_the_last_that_failed_and_the_first_that_passed() -> None:
    assert crossing(curve({10: 1.0, 20: 0.6, 30: 0.4, 40: 0.3}), LOSS) == Crossing(25, 20, 30)
    assert crossing(curve({10: 0.5, 30: 0.95, 40: 0.97}, "accuracy"), ACCURACY) == Crossing(
        pytest.approx(10 + 20 * 0.4 / 0.45), 10, 30
    )


def test_one_lucky_evaluation_does_not_count() -> None:
    assert crossing(curve({1: 1.0, 2: 0.4, 3: 0.9, 4: 0.8}), LOSS).censored
    assert crossing(curve({1: 0.4, 2: 0.9}), LOSS).censored
    assert crossing(curve({1: 1.0, 2: 0.9, 3: 0.4}), LOSS).censored
    assert crossing(curve({1: 0.3, 2: 0.95, 3: 0.5}, "accuracy"), ACCURACY).censored


def test_two_of_three_evaluations_count_at_the_middle_one() -> None:
    assert crossing(curve({1: 1.0, 2: 0.4, 3: 0.9, 4: 0.2}), LOSS).high == 3
    assert crossing(curve({1: 1.0, 2: 0.4, 3: 0.3, 4: 0.9}), LOSS).high == 2


def test_an_evaluation_more_never_takes_a_crossing_back() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        points = curve(dict(enumerate(random.uniform(0.3, 0.9, 12))))
        found = [crossing(points[:count], LOSS) for count in range(1, 13)]
        highs = [one.high for one in found if one.high is not None]
        assert len(set(highs)) <= 1
        assert all(one.high is not None for one in found[len(found) - len(highs) :])


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_the_rule_is_less_biased_by_noise_than_the_first_evaluation_that_passes(noise: float) -> None:
    """Loss = 0.5 (1000 / step) passes 0.5 at 1000 steps; each evaluation strays by ``noise``."""
    random = np.random.default_rng(1)
    steps = list(evaluation_steps(3000, 1.05))
    told, first = [], []
    for _ in range(400):
        stray = np.exp(noise * random.standard_normal(len(steps)))
        points = curve({step: 500 / step * factor for step, factor in zip(steps, stray, strict=True)})
        told.append(crossing(points, LOSS).steps or math.nan)
        first.append(next(point.step for point in points if LOSS.reached(point.metrics["loss"])))
    bias = np.mean(np.log(told)) - math.log(1000)
    assert abs(bias) <= 0.6 * noise
    assert abs(bias) < abs(np.mean(np.log(first)) - math.log(1000)) or noise < 0.03


def test_a_curve_that_never_passes_is_censored_at_its_last_step() -> None:
    assert crossing(curve({10: 1.0, 20: 0.6}), LOSS) == Crossing(None, 20, None)
    assert crossing([], LOSS) == Crossing(None, 0, None)
    assert crossing(curve({10: 0.0}, "other"), LOSS).censored


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_never_passes(value: float) -> None:
    assert crossing(curve({1: value, 2: value}), LOSS).censored
    assert crossing(curve({1: value, 2: value}, "accuracy"), ACCURACY).censored


def test_without_a_finite_value_before_the_middle_of_the_bracket_stands_in() -> None:
    late = curve({16: 1.0, 20: math.nan, 24: math.nan, 36: 0.4, 40: 0.4})
    assert crossing(late, LOSS) == Crossing(math.sqrt(25 * 36), 24, 36)
    assert crossing(curve({16: 0.4, 17: 0.4}), LOSS) == Crossing(4.0, 0, 16)
    assert crossing(curve({1: 0.4, 2: 0.3}), LOSS) == Crossing(1.0, 0, 1)


def test_a_metric_that_is_not_a_number_for_a_while_does_not_hide_the_crossing() -> None:
    assert crossing(curve({1: math.nan, 2: 0.9, 3: 0.6, 4: 0.4, 5: 0.3}), LOSS).high == 4


def test_a_target_met_before_training_takes_no_steps() -> None:
    assert crossing(curve({0: 0.4, 10: 0.3}), LOSS) == Crossing(0.0, 0, 0)
    assert crossing(curve({0: 1.0, 1: 0.0, 2: 0.0}), LOSS) == Crossing(0.5, 0, 1)


@given(st.floats(5, 5000), st.floats(1.01, 1.3), st.floats(0.2, 3))
def test_the_crossing_of_a_known_curve_is_recovered(truth: float, ratio: float, power: float) -> None:
    """Loss = 0.5 (truth / step) ^ power passes 0.5 at ``truth``."""
    steps = evaluation_steps(10_000, ratio)
    found = crossing(curve({step: 0.5 * (truth / step) ** power for step in steps}), LOSS)
    assert found.steps is not None and found.high is not None
    assert found.low <= truth <= found.high or found.high == pytest.approx(truth)
    assert found.low <= found.steps <= found.high
    bracket = math.log(found.high / found.low)
    assert abs(math.log(found.steps / truth)) <= (1 + power) * bracket**2 / 8 + 1e-9


@given(st.integers(1, 10**6), st.floats(1.0, 3.0))
def test_the_grid_is_geometric_in_whole_steps(maximum: int, ratio: float) -> None:
    steps = list(itertools.islice(evaluation_steps(maximum, ratio), 3000))
    assert steps[0] == 1 or maximum == 1
    assert steps[-1] == maximum or len(steps) == 3000
    for low, high in itertools.pairwise(steps):
        assert low < high <= max(low + 1, low * ratio)


def test_the_grid_has_equal_numbers_per_factor_of_progress() -> None:
    steps = list(evaluation_steps(100_000, 1.05))
    for low in (100, 1000, 10_000):
        assert sum(low <= step < 10 * low for step in steps) == pytest.approx(
            math.log(10) / math.log(1.05), rel=0.15
        )


def test_best_point_is_the_earliest_of_the_best_finite_ones() -> None:
    found = best_point(curve({1: 0.9, 2: math.nan, 3: 0.2, 4: 0.2, 5: -math.inf}), LOSS)
    assert found is not None and found.step == 3
    found = best_point(curve({1: 0.9, 2: 0.95, 3: math.inf}, "accuracy"), ACCURACY)
    assert found is not None and found.step == 2
    assert best_point(curve({1: math.nan}), LOSS) is None
    assert best_point([], LOSS) is None


def test_a_first_batch_that_happens_to_be_easy_is_no_divergence() -> None:
    losses = [0.096, 2.53, 1.35]
    falling, rising = [1.36, 1.33, 1.30], [1.36, 5.0, 9.0]
    assert not diverged(
        [CurvePoint(step, {"loss": falling[step]}, loss, 0.1, 0.01) for step, loss in enumerate(losses)]
    )
    assert diverged(
        [CurvePoint(step, {"loss": rising[step]}, loss, 0.1, 0.01) for step, loss in enumerate(losses)]
    )


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([2.3, 1.0, 0.5], False),
        ([2.3, math.nan], True),
        ([math.inf], True),
        ([2.3, 30.0, 40.0], True),
        ([2.3, 40.0, 1.0], False),  # overshoots once and recovers
        ([2.3, 1.0, 40.0], False),  # may still recover
        ([2.3, 5.0, 9.0], False),
        ([-1.0, -2.0, -3.0], False),
        ([-1.0, 20.0, 30.0], True),
        ([0.0, 1.0, 1.0], False),
        ([], False),
    ],
)
def test_divergence(losses: list[float], expected: bool) -> None:
    points = [CurvePoint(step, {}, loss, 0.1, 0.01) for step, loss in enumerate(losses)]
    assert diverged(points) is expected
    untrained = [CurvePoint(0, {}, None, 0.0, 0.01)]
    assert diverged(untrained + points) is expected
