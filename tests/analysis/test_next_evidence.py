"""What would be trained next is what tells most for its cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.further import further_sentence
from advisor.analysis.next_evidence import MOST_SEEDS, is_settled, most_telling, options, spread_kept
from advisor.analysis.scaling import fit_scaling
from advisor.analysis.scaling_curve import steps_at
from advisor.records.intervals import Interval
from advisor.records.scaling import (
    BatchSizeResult,
    Crossing,
    FitOutcome,
    Observation,
    ScalingFit,
    SearchUncertainty,
)

CURVE = 100.0, 60.0, 1.2
SIZES = [4, 16, 64, 256]


def result(batch_size: int, seeds: int, random: np.random.Generator) -> BatchSizeResult:
    truth = float(steps_at(CURVE, batch_size))
    found = [truth * math.exp(0.15 * random.standard_normal()) for _ in range(seeds)]
    seen = tuple(Observation(batch_size, Crossing(steps, 0.95 * steps, steps)) for steps in found)
    return BatchSizeResult(batch_size, {"learning_rate": 0.1}, False, 6, 0, seen, truth, None, False, 0.05)


def searched(seeds: int = 1) -> tuple[list[BatchSizeResult], ScalingFit]:
    random = np.random.default_rng(0)
    results = [result(size, seeds, random) for size in SIZES]
    slack = [SearchUncertainty(size, 0.05) for size in SIZES]
    seen = [observation for one in results for observation in one.observations]
    return results, fit_scaling(seen, slack, SIZES, 0.2, seed=0, draws=200)


@given(noise=st.floats(0.01, 2), share=st.floats(-0.95, 0.95))
def test_what_is_observed_narrows_as_jointly_normal_quantities_do(noise: float, share: float) -> None:
    random = np.random.default_rng(1)
    told, other = random.standard_normal((2, 4000))
    quantity = share * told + math.sqrt(1 - share**2) * other
    expected = math.sqrt(1 - share**2 / (1 + noise**2))
    assert spread_kept(quantity, told, noise) == pytest.approx(expected, abs=0.05)


def test_a_closer_look_narrows_more_and_a_constant_has_nothing_to_narrow() -> None:
    random = np.random.default_rng(2)
    told = random.standard_normal(500)
    assert spread_kept(told, told, 0.1) < spread_kept(told, told, 0.5) < spread_kept(told, told, 2.0) < 1
    assert spread_kept(np.zeros(500), told, 0.1) == 1.0


def test_a_seed_is_cheaper_than_a_new_batch_size_and_tells_the_most_per_example() -> None:
    results, fit = searched()
    choices = {choice.batch_size: choice for choice in options(results, [4, 16, 32, 64, 256], fit, 1)}
    assert choices[32].is_new and not choices[16].is_new
    assert choices[32].examples > choices[16].examples
    best = most_telling(list(choices.values()), fit)
    assert best is not None and best.spread_kept < 1
    gains = {
        size: -math.log(worth.spread_kept) / choice.examples
        for size, choice in choices.items()
        if (worth := most_telling([choice], fit)) is not None
    }
    assert best.option.batch_size == max(gains, key=lambda size: gains[size])


def test_a_batch_size_with_many_seeds_gets_no_more() -> None:
    results, fit = searched(seeds=MOST_SEEDS)
    assert [choice.batch_size for choice in options(results, [*SIZES, 32], fit, 1)] == [32]
    assert most_telling([], fit) is None and options([], SIZES, ScalingFit(fit.outcome, 0.2), 1) == []


@pytest.mark.parametrize(("low", "high", "settled"), [(10, 19, True), (10, 21, False), (0, 1, False)])
def test_an_interval_within_a_factor_of_2_is_settled(low: float, high: float, settled: bool) -> None:
    half = Interval((low + high) / 2, low, high)
    assert is_settled(replace(searched()[1], half_efficiency_batch_size=half)) is settled
    assert not is_settled(ScalingFit(FitOutcome.INSUFFICIENT, 0.2))


def test_one_more_batch_size_is_told_with_its_cost() -> None:
    results, few = searched()
    choices = options(results, [*SIZES, 32], few, 1)
    worth = most_telling([choice for choice in choices if choice.is_new], few)
    told = further_sentence(worth, few)
    assert told.startswith("One more batch size, 32, would cost about") and "narrow" in told
    assert further_sentence(None, few) == ""
