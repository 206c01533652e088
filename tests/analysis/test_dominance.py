"""A trial that is far behind the best one is stopped, and hardly ever one that would have been better."""

import itertools
import math

import numpy as np
import pytest

from advisor.analysis.curves import crossing, evaluation_steps
from advisor.analysis.dominance import LAG, is_dominated
from advisor.analysis.quadratic import QuadraticModel, Trajectory
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

LOSS = Target("loss", at_most=0.1)
ACCURACY = Target("accuracy", at_least=0.9)
MODEL = QuadraticModel.power_law()


def curve(values: dict[int, float], metric: str = "loss") -> list[CurvePoint]:
    return [CurvePoint(step, {metric: value}, value, 0.1, 0.01) for step, value in values.items()]


def falling(to: int, slowness: float = 1.0) -> list[CurvePoint]:
    """Loss = 10 slowness / step, so that the target takes 100 steps times ``slowness``."""
    return curve({step: 10 * slowness / step for step in evaluation_steps(to, 1.05)})


def test_a_trial_that_is_far_behind_is_stopped_once_it_had_its_chance() -> None:
    best = falling(110)
    assert not is_dominated(falling(20, slowness=5), best, 100, LOSS)
    assert is_dominated(falling(26, slowness=5), best, 100, LOSS)


@pytest.mark.parametrize("slowness", [0.5, 1.0, 1.3, 0.9 * LAG])
def test_a_trial_that_is_not_so_far_behind_runs_on(slowness: float) -> None:
    best = falling(110)
    assert not any(is_dominated(falling(to, slowness), best, 100, LOSS) for to in range(1, 110))


def test_a_trial_that_stands_where_the_best_one_stood_runs_on() -> None:
    """Accuracy may stay at chance for long, and then rise at once."""
    best = curve({step: 0.1 if step < 80 else 0.95 for step in range(1, 101)}, "accuracy")
    same = curve(dict.fromkeys(range(1, 71), 0.1), "accuracy")
    assert not is_dominated(same, best, 80, ACCURACY)


def test_what_is_not_a_number_is_behind_everything() -> None:
    best, lost = falling(110), curve(dict.fromkeys(range(1, 60), math.nan))
    assert is_dominated(lost, best, 100, LOSS)
    assert not is_dominated(falling(60, 5), curve(dict.fromkeys(range(1, 101), math.nan)), 100, LOSS)


def noisy_curve(batch_size: int, rate: float, most: int, random: np.random.Generator) -> list[CurvePoint]:
    trajectory = Trajectory(MODEL, batch_size, rate)
    return curve(
        {
            step: trajectory.loss(step) * math.exp(0.05 * random.standard_normal())
            for step in evaluation_steps(most, 1.05)
        }
    )


def test_it_hardly_ever_stops_the_better_one_and_saves_something() -> None:
    """Rates a factor of √2 apart around the best, with noise; smaller ones may lag in proportion."""
    random, target = np.random.default_rng(3), Target("loss", at_most=0.3)
    stopped = wrongly = steps = steps_without = 0
    for batch_size in (2, 4, 8):
        rates = 0.2 * batch_size * 2.0 ** np.arange(-2, 1.5, 0.5)
        curves = {rate: noisy_curve(batch_size, rate, 40_000, random) for rate in rates}
        found = {rate: crossing(points, target) for rate, points in curves.items()}
        for best, other in itertools.permutations(curves, 2):
            needed, own = found[best].steps, found[other].steps or math.inf
            if needed is None:
                continue
            within = [point for point in curves[other] if point.step <= needed]
            ends = next(
                (
                    number
                    for number in range(1, len(within) + 1)
                    if is_dominated(
                        within[:number], curves[best], needed, target, LAG * max(1.0, best / other)
                    )
                ),
                None,
            )
            stopped += ends is not None
            wrongly += ends is not None and own < needed
            steps += within[ends - 1].step if ends else min(own, needed)
            steps_without += min(own, needed)
    assert stopped > 20
    assert wrongly <= 0.02 * stopped
    assert steps < 0.9 * steps_without
