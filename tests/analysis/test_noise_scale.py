"""The noise scale is recovered where it is known, its interval covers it, and it picks a batch size."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from advisor.analysis.noise_scale import noise_scale, starting_batch_size
from advisor.analysis.quadratic import QuadraticModel, Trajectory
from advisor.records.intervals import Interval
from advisor.records.noise_scale import NoiseScale

DIMENSION = 40
GRADIENT = np.linspace(0.5, 1.5, DIMENSION) / 10
CURVATURE = 1.0 / np.arange(1, DIMENSION + 1)
"""Variances of the gradient of one example."""
TRUTH = float(CURVATURE.sum() / (GRADIENT**2).sum())
REPETITIONS = 250
Norms = NDArray[np.float64]

positive = st.floats(0.01, 100)
powers = st.lists(st.integers(0, 16), min_size=1, max_size=8, unique=True)


def sampled(
    batch_size: int, batches: int, random: np.random.Generator, gradient: Norms = GRADIENT
) -> tuple[Norms, Norms]:
    """Return squared norms of halves (their mean) and of whole batches, each of shape [batches]."""
    noise = random.standard_normal((2, batches, DIMENSION)) * np.sqrt(CURVATURE / (batch_size / 2))
    halves = gradient + noise
    return (halves**2).sum(axis=2).mean(axis=0), (halves.mean(axis=0) ** 2).sum(axis=1)


def simulated(batch_size: int, batches: int) -> Sequence[Interval]:
    random = np.random.default_rng([batch_size, batches])
    return [
        noise_scale(*sampled(batch_size, batches, random), batch_size, seed) for seed in range(REPETITIONS)
    ]


@pytest.mark.parametrize("batch_size", [8, 64, 512])
def test_the_noise_scale_is_recovered_at_any_batch_size(batch_size: int) -> None:
    random = np.random.default_rng(batch_size)
    found = noise_scale(*sampled(batch_size, 1_000, random), batch_size, seed=0)
    assert found.estimate == pytest.approx(TRUTH, rel=0.1)
    assert found.low < TRUTH < found.high < 1.5 * found.low


@pytest.mark.parametrize(("batch_size", "batches"), [(4, 48), (8, 12), (16, 48), (256, 12)])
def test_intervals_cover_the_truth(batch_size: int, batches: int) -> None:
    found = simulated(batch_size, batches)
    covered = np.mean([one.low <= TRUTH <= one.high for one in found])
    assert 0.92 <= covered <= 0.985


def test_estimates_are_not_biased_where_they_are_sharp() -> None:
    logs = [math.log(one.estimate / TRUTH) for one in simulated(64, 48)]
    assert abs(np.mean(logs)) < 0.02


@pytest.mark.parametrize("gradient", [np.zeros(DIMENSION), GRADIENT / 10])
def test_a_gradient_lost_in_its_noise_leaves_the_upper_end_open(gradient: Norms) -> None:
    """Wherever the interval claims an upper end it is wrong, which may happen in one of forty."""
    random = np.random.default_rng(5)
    found = [noise_scale(*sampled(8, 24, random, gradient), 8, seed) for seed in range(REPETITIONS)]
    open_ended = [one for one in found if one.high == math.inf]
    assert len(open_ended) >= 0.95 * REPETITIONS
    assert all(one.estimate == math.inf and 0 <= one.low < math.inf for one in open_ended)


def test_no_gradient_at_all_says_nothing() -> None:
    found = noise_scale(np.zeros(5), np.zeros(5), 8, seed=0)
    assert (found.low, found.estimate, found.high) == (0.0, math.inf, math.inf)


def test_no_noise_is_a_noise_scale_of_zero() -> None:
    found = noise_scale(np.full(5, 2.0), np.full(5, 2.0), 8, seed=0)
    assert (found.low, found.estimate, found.high) == (0.0, 0.0, 0.0)


@given(positive, st.integers(0, 5))
def test_the_unit_of_the_gradient_does_not_matter(factor: float, seed: int) -> None:
    half, whole = sampled(16, 10, np.random.default_rng(seed))
    found, scaled = noise_scale(half, whole, 16, 0), noise_scale(factor * half, factor * whole, 16, 0)
    assert (scaled.low, scaled.estimate, scaled.high) == pytest.approx(
        (found.low, found.estimate, found.high)
    )


def test_the_same_seed_gives_the_same_interval() -> None:
    norms = sampled(16, 10, np.random.default_rng(0))
    assert noise_scale(*norms, 16, 3) == noise_scale(*norms, 16, 3) != noise_scale(*norms, 16, 4)


def test_the_quadratic_model_tells_its_squared_gradient() -> None:
    """Along an expected trajectory of plain descent: every x² shrinks by (1 − rate · h)² a step."""
    model = QuadraticModel.power_law()
    almost_noiseless = Trajectory(model, 10**12, 0.3)
    h, many = model.eigenvalues, model.multiplicities
    for step in (0, 1, 7):
        expected = float((many * h**2 * (1 - 0.3 * h) ** (2 * step)).sum())
        assert almost_noiseless.squared_gradient_norm(step) == pytest.approx(expected, rel=1e-6)
    assert model.gradient_noise == pytest.approx(float((many * h).sum()))


def hint(interval: Interval | None) -> NoiseScale:
    return NoiseScale(64, 20, 4352, interval, False, "")


def around(estimate: float) -> NoiseScale:
    return hint(Interval(estimate, estimate / 2, estimate * 2))


SIZES = (8, 32, 128, 512, 2048)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (around(520), 128),
        (around(260), 128),  # nearer than 32 in the logarithm alone
        (around(252), 32),
        (around(6), 8),
        (around(1e9), 2048),
        (hint(Interval(0.0, 0.0, 0.0)), 8),
        (hint(None), 128),
        (None, 128),
        (hint(Interval(math.inf, 20.0, math.inf)), 128),
        (hint(Interval(math.inf, 3600.0, math.inf)), 512),
        (hint(Interval(math.inf, 0.0, math.inf)), 128),
    ],
)
def test_the_search_starts_near_a_quarter_of_the_noise_scale(found: NoiseScale | None, expected: int) -> None:
    assert starting_batch_size(SIZES, found) == expected


@given(powers, st.floats(0, 1e7))
def test_no_candidate_is_nearer_than_the_one_it_starts_at(exponents: list[int], estimate: float) -> None:
    candidates = sorted(2**exponent for exponent in exponents)
    chosen = starting_batch_size(candidates, around(estimate))
    assert chosen in candidates
    wanted = max(estimate / 4, 1.0)
    distance = abs(math.log(chosen / wanted))
    assert all(distance <= abs(math.log(other / wanted)) + 1e-12 for other in candidates)
