import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.compass import (
    LEFT_OPEN,
    Axis,
    Compass,
    Offsets,
    Rank,
    Score,
    best_offsets,
    start_learning_rate,
)
from advisor.records.search_space import Float

RATES = Float(1e-6, 1e3, log=True)
MOMENTA = Float(0.5, 0.999, log_one_minus=True)


def rate_search(start: float, strides: tuple[float, ...] = (2.0, 1.0, 0.5), range_: Float = RATES) -> Compass:
    return Compass((Axis("learning_rate", range_, start),), strides)


def plateau_steps(rate: float, bend: float) -> float | None:
    """Steps × rate constant below the bend, rising above it, divergence at four times the bend."""
    return None if rate > 4 * bend else 10 / rate * (1 + (rate / bend) ** 3)


def run(compass: Compass, steps_at) -> dict[Offsets, Score]:
    scores: dict[Offsets, Score] = {}
    while (point := compass.propose(scores)) is not None:
        values = compass.values(point)
        steps = steps_at(**values)
        assert point not in scores
        diverged = Score(Rank.INFEASIBLE, values["learning_rate"])
        scores[point] = diverged if steps is None else Score(Rank.REACHED, steps)
    return scores


@given(
    bend=st.floats(-9, 9).map(lambda power: 2.0**power),
    start=st.floats(-3, 3).map(lambda power: 2.0**power),
)
def test_the_optimum_is_bracketed_from_any_start(bend: float, start: float) -> None:
    scores = run(rate_search(start * bend), lambda learning_rate: plateau_steps(learning_rate, bend))
    optimum = bend / 2 ** (1 / 3)
    least = plateau_steps(optimum, bend)
    assert least is not None
    best = scores[best_offsets(scores)]
    assert best.value <= 1.1 * least
    assert len(scores) <= 12


@pytest.mark.parametrize("strides", [(2.0, 1.0, 0.5), (1.0, 0.5)])
def test_it_comes_down_from_far_above_divergence(strides: tuple[float, ...]) -> None:
    scores = run(rate_search(64.0, strides), lambda learning_rate: plateau_steps(learning_rate, 1.0))
    assert scores[best_offsets(scores)].rank is Rank.REACHED
    assert len(scores) <= 12


def test_a_near_start_needs_few_trials() -> None:
    counts = [
        len(run(rate_search(offset, (1.0, 0.5)), lambda learning_rate: plateau_steps(learning_rate, 1.0)))
        for offset in np.geomspace(0.5, 1.4, 9)
    ]
    assert np.mean(counts) <= 6


def test_the_search_goes_up_from_a_rate_that_is_far_too_small_and_down_from_divergence() -> None:
    compass = rate_search(1.0)
    assert compass.propose({}) == (0.0,)
    assert compass.propose({(0.0,): Score(Rank.TOO_SLOW, 1.0)}) == (2.0,)
    assert compass.propose({(0.0,): Score(Rank.INFEASIBLE, 0.0)}) == (-2.0,)


def test_a_result_that_reached_the_target_beats_one_that_did_not() -> None:
    scores = {(0.0,): Score(Rank.TOO_SLOW, 0.001), (1.0,): Score(Rank.REACHED, 900.0)}
    assert best_offsets(scores) == (1.0,)


def test_the_range_is_never_left_and_its_edge_is_told() -> None:
    compass = rate_search(1.0, range_=Float(0.3, 1.5, log=True))
    scores = run(compass, lambda learning_rate: 10 / learning_rate)
    rates = [compass.values(point)["learning_rate"] for point in scores]
    assert min(rates) >= 0.3 and max(rates) <= 1.5
    assert compass.at_edge(best_offsets(scores))
    assert not rate_search(1.0).at_edge((0.0,))


@given(seed=st.integers(0, 1000))
def test_momentum_and_learning_rate_are_found_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    best_rate, best_gap = math.exp(rng.uniform(-1, 1)), math.exp(rng.uniform(-4, -1))

    def steps(learning_rate: float, momentum: float) -> float:
        effective = learning_rate / (1 - momentum)
        return 100 * math.exp(
            0.5 * math.log(effective / best_rate) ** 2 + 0.2 * math.log((1 - momentum) / best_gap) ** 2
        )

    compass = Compass((Axis("learning_rate", RATES, 0.1), Axis("momentum", MOMENTA, 0.9)), (2.0, 1.0, 0.5))
    scores = run(compass, steps)
    assert scores[best_offsets(scores)].value <= 108
    assert len(scores) <= 30


def test_a_search_over_recorded_scores_takes_the_same_way() -> None:
    def steps(learning_rate: float) -> float | None:
        return plateau_steps(learning_rate, 0.3)

    assert list(run(rate_search(0.05), steps)) == list(run(rate_search(0.05), steps))


@pytest.mark.parametrize("upper", Rank)
def test_slack_is_a_share_of_the_finest_stride_by_the_upper_neighbour(upper: Rank) -> None:
    compass = rate_search(1.0, (1.0, 0.5))
    best, slower = Score(Rank.REACHED, 100.0), Score(Rank.TOO_SLOW, 0.1)
    scores = {(0.0,): best, (-0.5,): slower, (0.5,): Score(upper, 120.0)}
    assert compass.log_slack((0.0,), scores) == pytest.approx(LEFT_OPEN[upper] * math.log(2) / 2)


def test_slack_counts_what_was_never_tried() -> None:
    compass = rate_search(1.0, (1.0, 0.5))
    best = {(0.0,): Score(Rank.REACHED, 100.0)}
    assert compass.log_slack((0.0,), best) == pytest.approx(math.log(2))
    slower = Score(Rank.TOO_SLOW, 0.1)
    assert compass.log_slack((0.0,), {**best, (0.5,): slower}) == pytest.approx(math.log(2))


@pytest.mark.parametrize("sharpness", [2.0, 4.0, 12.0])
def test_half_of_what_is_left_open_is_about_what_is_gained(sharpness: float) -> None:
    """Over random places of the bend, for smooth optima and cliffs."""
    random, gained, expected = np.random.default_rng(0), [], []
    for bend in 2.0 ** random.uniform(-0.25, 0.25, 60):

        def steps_at(learning_rate: float, bend: float = bend) -> float | None:
            if learning_rate > 2.5 * bend:
                return None
            return 10 / learning_rate * (1 + (learning_rate / bend) ** sharpness)

        compass = rate_search(1.0)
        scores = run(compass, steps_at)
        point = best_offsets(scores)
        least = min(steps for rate in bend * np.geomspace(0.1, 2.5, 400) if (steps := steps_at(rate)))
        gained.append(math.log(scores[point].value / least))
        expected.append(compass.log_slack(point, scores) / 2)
    assert abs(np.mean(gained) - np.mean(expected)) < 0.1
    assert max(gained) < math.log(2) / 2


def too_slow(steps: float) -> dict[Offsets, Score]:
    return {(0.0,): Score(Rank.TOO_SLOW, 0.1, steps=steps)}


def test_the_side_to_try_first_follows_from_steps_times_rate() -> None:
    compass = replace(rate_search(0.5, (1.0, 0.5)), usual_progress=10.0)
    assert compass.propose(too_slow(25.0)) == (1.0,)
    assert compass.propose(too_slow(32.0)) == (-1.0,)
    assert compass.propose({(0.0,): Score(Rank.REACHED, 32.0, steps=32.0)}) == (-1.0,)


def test_steps_times_rate_say_nothing_of_other_hyperparameters() -> None:
    axes = (Axis("momentum", MOMENTA, 0.9), Axis("learning_rate", RATES, 0.5))
    compass = Compass(axes, (1.0, 0.5), usual_progress=10.0)
    start = (0.0, 0.0)
    assert compass.propose({start: Score(Rank.REACHED, 900.0, steps=900.0)}) == (1.0, 0.0)


def test_a_search_that_moves_starts_at_the_values_of_its_point() -> None:
    compass = Compass((Axis("learning_rate", RATES, 0.1), Axis("momentum", MOMENTA, 0.9)), (2.0, 1.0))
    point = (1.0, -0.5)
    moved = compass.moved(point)
    assert moved.values(moved.origin) == pytest.approx(compass.values(point))


def test_equal_results_are_told_apart_by_the_training_loss() -> None:
    def score(rate: float) -> Score:
        return Score(Rank.REACHED, 9.0) if rate > 10 else Score(Rank.TOO_SLOW, 0.3, 2.3 - 0.001 * rate)

    compass, scores = rate_search(1e-2), dict[Offsets, Score]()
    while (point := compass.propose(scores)) is not None:
        scores[point] = score(compass.values(point)["learning_rate"])
    assert scores[best_offsets(scores)].rank is Rank.REACHED


@given(
    exponent=st.sampled_from([0.5, 1.0]),
    rate=st.floats(1e-4, 1.0),
    batch_size=st.integers(0, 12).map(lambda power: 2**power),
)
def test_the_start_follows_the_scaling_rule(exponent: float, rate: float, batch_size: int) -> None:
    none, full = start_learning_rate({}, 32, exponent, rate), rate * (batch_size / 32) ** exponent
    assert none == pytest.approx(rate)
    assert start_learning_rate({}, batch_size, exponent, rate) == pytest.approx(full)
    between = start_learning_rate({32: rate}, batch_size, exponent, 1.0)
    assert between == pytest.approx(math.sqrt(rate * full))  # It may have saturated, or not at all.


@given(
    exponent=st.sampled_from([0.5, 1.0]),
    critical=st.floats(2.0, 2000.0),
    batch_size=st.integers(0, 14).map(lambda power: 2**power),
)
def test_the_start_is_near_a_rate_that_saturates(exponent: float, critical: float, batch_size: int) -> None:
    """Rates of the form 1 / (1 + critical / batch size), to the exponent, are met within a doubling."""

    def rate(size: int) -> float:
        return (1 + critical / size) ** -exponent

    known = {size: rate(size) for size in (16, 64, 256)}
    start = start_learning_rate(known, batch_size, exponent, 1.0)
    away = abs(math.log2(batch_size / min(known, key=lambda size: abs(math.log(size / batch_size)))))
    assert abs(math.log2(start / rate(batch_size))) <= max(0.5, away * exponent / 2 + 1e-9)


def test_a_saturated_learning_rate_stays_where_it_is() -> None:
    assert start_learning_rate({256: 0.5, 64: 0.5}, 1024, 1.0, 1.0) == pytest.approx(0.5)
