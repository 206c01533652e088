"""What keeps up with a pace, and what is left behind."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.curves import evaluation_steps
from advisor.analysis.dominance import LAG, LAG_ELSEWHERE
from advisor.analysis.quadratic import QuadraticModel, Trajectory, best_learning_rate
from advisor.records.target import Target
from advisor.records.trials import CurvePoint
from advisor.workflows.pace import Pace

LOSS = Target("loss", at_most=0.1)


def curve(to: int, slowness: float = 1.0) -> list[CurvePoint]:
    """Loss = 10 slowness / step, so that the target takes 100 steps times ``slowness``."""
    return [
        CurvePoint(step, {"loss": 10 * slowness / step}, 1.0, 0.1, 0.01)
        for step in evaluation_steps(to, 1.05)
    ]


def left_behind(pace: Pace, slowness: float, rate: float = 1.0) -> bool:
    whole = curve(110, slowness)
    return any(
        pace.leaves_behind(whole[:ends], {"learning_rate": rate}, LOSS) for ends in range(1, len(whole) + 1)
    )


@given(st.floats(1.0, 8.0))
def test_a_trial_may_lag_by_a_factor_and_not_by_much_more(slowness: float) -> None:
    pace = Pace(curve(110), 100, rate=1.0)
    if slowness < 0.9 * LAG:
        assert not left_behind(pace, slowness)
    if slowness > 1.2 * LAG:
        assert left_behind(pace, slowness)


@pytest.mark.parametrize("smaller", [1.4, 2.0, 4.0])
def test_a_smaller_learning_rate_may_start_slower_in_proportion(smaller: float) -> None:
    pace = Pace(curve(110), 100, rate=1.0)
    assert not left_behind(pace, 0.75 * LAG * smaller, rate=1 / smaller)
    assert left_behind(pace, 1.5 * LAG * smaller, rate=1 / smaller)
    assert left_behind(pace, 1.5 * LAG, rate=smaller)


@given(st.sampled_from([8, 32, 128]), st.sampled_from([8, 32, 128]))
def test_elsewhere_a_larger_batch_size_keeps_the_steps_and_a_smaller_one_the_examples(
    known: int, other: int
) -> None:
    elsewhere = Pace(curve(110), 100).elsewhere(known, other)
    slower = max(1.0, known / other)
    assert elsewhere.steps == 100 * slower and elsewhere.lag == LAG_ELSEWHERE
    assert elsewhere.steps_when_behind == LAG_ELSEWHERE * 100 * slower
    assert [point.step for point in elsewhere.curve] == [
        math.ceil(point.step * slower) for point in curve(110)
    ]


@pytest.mark.parametrize(("known", "other"), [(8, 32), (32, 8), (64, 256), (256, 64), (512, 64)])
def test_the_best_learning_rate_keeps_up_with_the_pace_of_another_batch_size(known: int, other: int) -> None:
    """On the noisy quadratic model, with evaluations that stray by 5 %."""
    random, model, target = np.random.default_rng([known, other]), QuadraticModel.power_law(), 0.3
    trained = {}
    for size in (known, other):
        rate, steps = best_learning_rate(model, size, target)
        assert rate is not None and steps is not None
        trajectory = Trajectory(model, size, rate)
        noise = np.exp(0.05 * random.standard_normal(1000))
        trained[size] = [
            CurvePoint(step, {"loss": trajectory.loss(step) * stray}, 1.0, 0.1, 0.01)
            for step, stray in zip(evaluation_steps(steps, 1.05), noise, strict=False)
        ]
    pace = Pace(trained[known], trained[known][-1].step).elsewhere(known, other)
    goal, whole = Target("loss", at_most=target), trained[other]
    assert not any(pace.leaves_behind(whole[:ends], {}, goal) for ends in range(1, len(whole) + 1))
