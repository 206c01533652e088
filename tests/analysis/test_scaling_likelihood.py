"""The fit of many copies at once, beside a general minimizer on one copy at a time."""

import numpy as np
import pytest
from scipy.optimize import minimize

from advisor.analysis.scaling_curve import log_excess
from advisor.analysis.scaling_likelihood import (
    LOG_SHARPNESS_MEAN,
    LOG_SHARPNESS_SD,
    Copies,
    Evidence,
    fit_copies,
    start_of,
)
from advisor.records.scaling import Crossing, Observation

SCALE = 0.08


def evidence(batch_sizes: list[int], seed: int) -> Evidence:
    """Return a noisy search that failed twice at its smallest batch size."""
    random = np.random.default_rng(seed)
    turn = random.uniform(batch_sizes[0], batch_sizes[-1])
    seen = [Observation(batch_sizes[0], Crossing(None, 40 * (1 + turn / batch_sizes[0]), None))] * 2
    for size in batch_sizes[1:] * 2:
        steps = 50 * (1 + turn / size) * float(np.exp(0.15 * random.standard_normal()))
        seen.append(Observation(size, Crossing(steps, steps * 0.98, steps * 1.02)))
    return Evidence.of(seen)


def loss(found: Evidence, copies: Copies, row: int, curve: np.ndarray) -> float:
    """Return the negative log posterior of one copy, written out plainly."""
    scales = np.sqrt(SCALE**2 + (found.bracket_sd / 1.687) ** 2)
    predicted = curve[0] + log_excess(curve[1] - found.log_batch, np.exp(curve[2]))
    z = (copies.log_steps[row] - predicted) / scales
    later, earlier = np.logaddexp(0, z), np.logaddexp(0, -z)
    terms = np.where(found.censored, later, later + earlier)
    penalty = 0.5 * ((curve[2] - copies.prior[row]) / LOG_SHARPNESS_SD) ** 2
    return float(copies.weights[row] @ terms + penalty)


def copies_of(found: Evidence, rows: int) -> Copies:
    random = np.random.default_rng(1)
    shape = (rows, len(found.log_steps))
    log_steps = found.log_steps + 0.1 * random.standard_normal(shape)
    prior = random.normal(LOG_SHARPNESS_MEAN, LOG_SHARPNESS_SD, rows)
    return Copies(log_steps, random.exponential(size=shape), prior)


@pytest.mark.parametrize("batch_sizes", [[8, 64, 512], [8, 32, 128, 512, 2048], [4 << n for n in range(9)]])
def test_no_general_minimizer_finds_a_better_curve(batch_sizes: list[int]) -> None:
    found = evidence(batch_sizes, seed=len(batch_sizes))
    copies = copies_of(found, rows=8)
    curves = fit_copies(found, copies, SCALE, start_of(found))
    low, high = found.log_batch.min() - np.log(100), found.log_batch.max() + np.log(100)
    bounds = [(None, None), (low, high), (np.log(0.5), np.log(3.0))]
    for row, curve in enumerate(curves):
        ours = loss(found, copies, row, curve)
        for turn in np.linspace(found.log_batch.min() - 1, found.log_batch.max() + 1, 3):
            start = np.array([found.log_steps.min(), turn, 0.2])
            other = minimize(lambda c, row=row: loss(found, copies, row, c), start, bounds=bounds)
            assert ours <= other.fun + 1e-3


def test_copies_do_not_influence_one_another() -> None:
    found = evidence([8, 32, 128, 512, 2048], seed=3)
    copies = copies_of(found, rows=12)
    together = fit_copies(found, copies, SCALE, start_of(found))
    alone = [
        fit_copies(
            found,
            Copies(copies.log_steps[[row]], copies.weights[[row]], copies.prior[[row]]),
            SCALE,
            start_of(found),
        )[0]
        for row in range(12)
    ]
    assert np.allclose(together, alone)


def test_observations_become_ordered_arrays() -> None:
    seen = [
        Observation(64, Crossing(20.0, 19.0, 21.0)),
        Observation(8, Crossing(None, 100.0, None)),
        Observation(8, Crossing(None, 0.0, None)),
        Observation(8, Crossing(90.0, 0.0, 95.0)),
    ]
    found = Evidence.of(seen)
    assert found.sizes.tolist() == [8, 64]
    assert found.size_of.tolist() == [0, 0, 1]
    assert found.censored.tolist() == [False, True, False]
    assert np.allclose(np.exp(found.log_steps), [90, 100, 20])
    assert found.bracket_sd == pytest.approx([1.0, 0.0, np.log(21 / 19) / np.sqrt(12)])
    assert found.sizes_that_arrived.tolist() == [8, 64]
