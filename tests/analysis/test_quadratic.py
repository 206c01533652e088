import csv
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.quadratic import QuadraticModel, Trajectory, best_learning_rate

MODEL = QuadraticModel.power_law()
SMALL = QuadraticModel.power_law(dimension=200, bins=12)
TRUTH = Path(__file__).parents[1] / "assets" / "nqm_ground_truth.csv"


def known_answers() -> list[dict[str, float]]:
    lines = [line for line in TRUTH.read_text().splitlines() if not line.startswith("#")]
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def step_by_step(
    model: QuadraticModel, batch_size: int, rate: float, momentum: float, steps: int
) -> list[float]:
    """Return losses after 0, 1, … steps from the recurrences as they are published."""
    kappa, noise = rate * model.eigenvalues, rate**2 * model.eigenvalues / batch_size
    a, v, k = np.ones_like(kappa), np.zeros_like(kappa), np.zeros_like(kappa)
    losses = [float(model.weights @ a)]
    for _ in range(steps):
        a, v, k = (
            (1 - kappa) ** 2 * a + momentum**2 * v + 2 * (1 - kappa) * momentum * k + noise,
            kappa**2 * a + momentum**2 * v - 2 * kappa * momentum * k + noise,
            -(1 - kappa) * kappa * a + momentum**2 * v + momentum * (1 - 2 * kappa) * k + noise,
        )
        losses.append(float(model.weights @ a))
    return losses


any_stable_update = given(
    batch_size=st.integers(1, 4096),
    share=st.floats(1e-3, 0.999),
    momentum=st.sampled_from([0.0, 0.3, 0.9, 0.99]),
)
without_deadline = settings(deadline=None)


def test_steps_to_target_are_the_known_ones() -> None:
    for row in known_answers():
        trajectory = Trajectory(MODEL, int(row["batch_size"]), row["learning_rate"])
        assert trajectory.steps_to_target(row["target_loss"]) == row["steps"]


def test_the_best_learning_rate_is_at_least_as_good_as_the_best_of_a_fine_grid() -> None:
    for row in known_answers()[::4]:
        rate, steps = best_learning_rate(MODEL, int(row["batch_size"]), row["target_loss"])
        assert steps is not None
        assert 0.98 * row["steps"] < steps <= 1.0005 * row["steps"]
        assert rate == pytest.approx(row["learning_rate"], rel=0.05)


def test_momentum_needs_no_more_steps_than_sgd_and_helps_at_large_batch_sizes() -> None:
    for batch_size, least_gain in ((1, 1.0), (4096, 10.0)):
        _, plain = best_learning_rate(MODEL, batch_size, 0.1)
        _, heavy = best_learning_rate(MODEL, batch_size, 0.1, momentum=0.9)
        assert plain is not None
        assert heavy is not None
        assert plain / heavy >= least_gain


@without_deadline
@any_stable_update
def test_any_step_is_that_of_the_recurrence(batch_size: int, share: float, momentum: float) -> None:
    rate = share * SMALL.largest_learning_rate(momentum)
    expected = step_by_step(SMALL, batch_size, rate, momentum, 90)
    trajectory = Trajectory(SMALL, batch_size, rate, momentum)
    for step in (0, 1, 2, 17, 63, 64, 90):
        assert trajectory.loss(step) == pytest.approx(expected[step], rel=1e-6)
        assert trajectory.cumulative_loss(step) == pytest.approx(sum(expected[:step]), rel=1e-6)


@without_deadline
@any_stable_update
def test_the_first_step_at_the_target_is_found_though_losses_rise_and_fall(
    batch_size: int, share: float, momentum: float
) -> None:
    rate = share * SMALL.largest_learning_rate(momentum)
    losses = step_by_step(SMALL, batch_size, rate, momentum, 120)
    trajectory = Trajectory(SMALL, batch_size, rate, momentum)
    for target in (min(losses) * (1 + 1e-6), (losses[0] + min(losses)) / 2, losses[40] * (1 + 1e-6)):
        first = next(step for step, loss in enumerate(losses) if loss <= target)
        assert trajectory.steps_to_target(target) == first


@without_deadline
@given(share=st.floats(0.01, 0.9), momentum=st.sampled_from([0.0, 0.9]), step=st.integers(1, 5000))
def test_a_larger_batch_never_has_a_larger_loss(share: float, momentum: float, step: int) -> None:
    rate = share * SMALL.largest_learning_rate(momentum)
    losses = [Trajectory(SMALL, batch_size, rate, momentum).loss(step) for batch_size in (1, 3, 50, 10_000)]
    assert all(later <= earlier for earlier, later in pairwise(losses))


def test_simulated_trainings_have_the_expected_loss() -> None:
    random = np.random.default_rng(7)
    rate, momentum, batch_size, runs = 0.4, 0.6, 4, 4000
    x = random.standard_normal((runs, 1, len(SMALL.eigenvalues)))[:, 0]
    v = np.zeros_like(x)
    for _ in range(30):
        noise = np.sqrt(SMALL.eigenvalues / batch_size) * random.standard_normal(x.shape)
        v = momentum * v - rate * (SMALL.eigenvalues * x + noise)
        x = x + v
    losses = x**2 @ SMALL.weights
    error = losses.std() / math.sqrt(runs)
    assert abs(losses.mean() - Trajectory(SMALL, batch_size, rate, momentum).loss(30)) < 4 * error


def test_a_target_below_the_noise_is_never_reached() -> None:
    assert Trajectory(MODEL, 1, 1.0).steps_to_target(0.01) is None
    assert Trajectory(MODEL, 64, 1.0).steps_to_target(0.1, max_steps=100) is None


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_beyond_the_largest_learning_rate_training_diverges_to_infinity(momentum: float) -> None:
    limit = MODEL.largest_learning_rate(momentum)
    within = Trajectory(MODEL, 64, 0.999 * limit, momentum)
    assert within.loss(10**7) == pytest.approx(within.loss(10**6), rel=1e-6)
    beyond = Trajectory(MODEL, 64, 1.01 * limit, momentum)
    assert beyond.loss(10**6) == math.inf
    assert beyond.cumulative_loss(10**6) == math.inf
    assert beyond.steps_to_target(0.1) is None


def test_a_start_at_the_target_takes_no_steps() -> None:
    assert Trajectory(MODEL, 8, 0.1).steps_to_target(MODEL.initial_loss) == 0


def test_eigenvalues_are_harmonic_and_none_is_lost() -> None:
    assert MODEL.multiplicities.sum() == 10_000
    assert MODEL.eigenvalues.max() == 1
    assert MODEL.eigenvalues.min() == pytest.approx(1e-4)
    assert MODEL.initial_loss == pytest.approx(0.5 * np.sum(1 / np.arange(1, 10_001)), rel=0.05)
