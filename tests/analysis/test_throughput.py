"""Known times per step are recovered through noise, drift, warm-up and stalls; limits are found."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.throughput import (
    DRIFT,
    fit_time_model,
    precise_enough,
    saturation_batch_size,
    split_warm_up,
    summarize,
    summarize_batch,
    time_per_step,
)
from advisor.records.measurement import BatchMeasurement, BatchThroughput, MeasurementOutcome
from advisor.records.session import BlockTiming
from tests.analysis.evidence import blocks, measurement, run

TRUE_S = 1e-3


def simulated(
    random: np.random.Generator,
    number: int,
    noise: float = 0.03,
    drift: float = 0.01,
    stalls: int = 0,
    warm_up: float = 0.0,
) -> list[BlockTiming]:
    """Blocks of 50 steps of 1 ms: white noise, slow drift, stalls of ten times, decaying warm-up (blocks)."""
    level = np.empty(number)
    level[0] = random.normal(0, drift)
    for index in range(1, number):
        level[index] = 0.95 * level[index - 1] + math.sqrt(1 - 0.95**2) * random.normal(0, drift)
    times = TRUE_S * np.exp(level + random.normal(-(noise**2) / 2, noise, number))
    times[random.choice(number, stalls, replace=False)] *= 10
    if warm_up:
        times *= 1 + 2 * np.exp(-np.arange(number) / warm_up)
    return [BlockTiming(50, 50 * time, 1.0) for time in times]


@pytest.mark.parametrize(
    ("number", "settings", "least"),
    [
        (5, {}, 0.93),
        (20, {}, 0.93),
        (60, {}, 0.95),
        (20, {"drift": 0.0, "noise": 0.15}, 0.90),
        (20, {"stalls": 1}, 0.93),
        (60, {"stalls": 2}, 0.93),
        (60, {"warm_up": 3.0}, 0.93),
    ],
)
def test_the_interval_covers_the_mean(number: int, settings: Mapping[str, float], least: float) -> None:
    random = np.random.default_rng(1)
    repetitions, covered, errors = 400, 0, []
    for _ in range(repetitions):
        _, steady = split_warm_up(simulated(random, number, **settings))  # type: ignore[arg-type]
        found = time_per_step(steady)
        covered += found.low <= TRUE_S <= found.high
        errors.append(found.estimate / TRUE_S - 1)
    assert covered / repetitions >= least
    assert abs(np.mean(errors)) < 0.015


def test_the_mean_is_estimated_and_not_the_median() -> None:
    random = np.random.default_rng(2)
    times = np.where(random.random(4000) < 0.3, 1.3, 1.0)
    found = time_per_step([BlockTiming(1, time, 1.0) for time in times])
    assert found.estimate == pytest.approx(times.mean(), rel=1e-9)


def test_drift_is_a_floor_that_more_blocks_do_not_narrow() -> None:
    found = time_per_step(blocks(2e-3, 1000))
    assert math.log(found.high / found.estimate) == pytest.approx(DRIFT)
    assert precise_enough(blocks(2e-3, 1000), 0.001)


def test_one_block_says_nothing_about_its_own_spread() -> None:
    found = time_per_step(blocks(2e-3, 1))
    assert found.estimate == pytest.approx(2e-3)
    assert found.high / found.low > 1.5
    assert not precise_enough(blocks(2e-3, 1), 0.05)
    assert not precise_enough([], 0.05)


@given(st.floats(1e-6, 1e3), st.integers(0, 1000), st.integers(1, 60))
def test_time_scales_with_the_unit_of_time(factor: float, seed: int, number: int) -> None:
    original = simulated(np.random.default_rng(seed), number)
    scaled = [BlockTiming(block.steps, block.seconds * factor, 1.0) for block in original]
    assert len(split_warm_up(scaled)[0]) == len(split_warm_up(original)[0])
    found, expected = time_per_step(scaled), time_per_step(original).scaled(factor)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(1e-6, 10)), max_size=40))
def test_warm_up_is_a_prefix_and_at_most_half(raw: list[tuple[int, float]]) -> None:
    given_blocks = tuple(BlockTiming(steps, seconds, 1.0) for steps, seconds in raw)
    warm_up, steady = split_warm_up(given_blocks)
    assert warm_up + steady == given_blocks
    assert len(warm_up) <= len(given_blocks) / 2
    assert not warm_up or len(steady) >= 5


@pytest.mark.parametrize("slow", [1, 4, 9])
def test_slow_leading_blocks_are_warm_up(slow: int) -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        series = simulated(random, 30)
        for index in range(slow):
            series[index] = BlockTiming(50, series[index].seconds * 1.5, 1.0)
        assert slow <= len(split_warm_up(series)[0]) <= 15


def test_a_stall_in_the_middle_is_no_warm_up() -> None:
    series = list(blocks(TRUE_S, 30))
    series[8] = BlockTiming(10, 1.0, 1.0)
    assert split_warm_up(series)[0] == ()


def test_a_warm_up_that_may_not_be_over_is_not_precise_enough() -> None:
    falling = [BlockTiming(10, 10 * TRUE_S * (1 + math.exp(-index / 4)), 1.0) for index in range(12)]
    assert not precise_enough(falling, 1.0)
    assert precise_enough(falling + list(blocks(TRUE_S, 40)), 0.02)


def rows(throughputs: Mapping[int, float]) -> list[BatchThroughput]:
    return [summarize_batch(measurement(size, size / value)) for size, value in throughputs.items()]


@pytest.mark.parametrize(
    ("throughputs", "expected"),
    [
        ({1: 100, 2: 200, 4: 400}, None),
        ({1: 100, 2: 200, 4: 205, 8: 206}, 2),
        ({1: 100, 2: 200, 4: 150, 8: 390, 16: 780}, None),  # a single dip
        ({1: 100, 2: 200, 4: 150, 8: 201, 16: 203}, 2),  # a dip whose recovery is no growth
        ({1: 100, 2: 200, 4: 204}, None),  # one size is not enough
        ({1: 100, 4: 115, 16: 130}, None),  # 7 % per doubling is growth
        ({1: 100, 4: 105, 16: 110}, 1),
        ({1: 100}, None),
        ({}, None),
    ],
)
def test_saturation_needs_two_sizes_in_a_row(throughputs: Mapping[int, float], expected: int | None) -> None:
    assert saturation_batch_size(rows(throughputs)) == expected


@given(st.floats(1e-7, 1.0), st.floats(1e-9, 1e-3))
def test_the_time_model_is_recovered(fixed_s: float, per_example_s: float) -> None:
    exact = {2**k: 2**k / (fixed_s + per_example_s * 2**k) for k in range(11)}
    model = fit_time_model(rows(exact))
    assert model is not None
    assert model.residual_log_rms < 0.01
    for size, value in exact.items():
        assert model.fixed_s + model.per_example_s * size == pytest.approx(size / value, rel=0.02)


def test_the_time_model_survives_noise_and_one_bad_size() -> None:
    random = np.random.default_rng(4)
    found = []
    for _ in range(50):
        times = {2**k: (1e-3 + 1e-5 * 2**k) * math.exp(random.normal(0, 0.03)) for k in range(12)}
        times[64] *= 1.6
        model = summarize(run(times)).time_model
        assert model is not None
        found.append((model.fixed_s, model.per_example_s))
    assert np.mean(found, axis=0) == pytest.approx([1e-3, 1e-5], rel=0.06)


def test_time_that_falls_with_the_batch_size_has_no_negative_part() -> None:
    model = fit_time_model(rows({1: 1 / 1.2, 2: 2 / 1.1, 4: 4 / 1.0}))
    assert model is not None
    assert model.fixed_s == pytest.approx(1.1, rel=0.05)
    assert model.per_example_s == 0


def test_two_sizes_do_not_make_a_time_model() -> None:
    assert fit_time_model(rows({1: 1, 2: 2})) is None


def test_summary_of_a_sweep_that_memory_ended() -> None:
    out_of_memory = BatchMeasurement(32, MeasurementOutcome.OUT_OF_MEMORY, "ResourceExhaustedError")
    failed = BatchMeasurement(1, MeasurementOutcome.FAILED, "Batch normalization needs two examples.")
    found = summarize(run({4: 2e-3, 2: 2e-3, 8: 3e-3, 16: 5e-3}, out_of_memory, failed))
    assert [row.batch_size for row in found.table] == [1, 2, 4, 8, 16, 32]
    assert found.largest_feasible_batch_size == 16
    assert found.saturation_batch_size is None
    assert found.time_per_step_s(32) is None
    assert [row.doubling_efficiency for row in found.table] == [
        None, None, pytest.approx(1), pytest.approx(2 / 3), pytest.approx(0.6), None,
    ]  # fmt: skip
    throughput = found.table[2].throughput_examples_per_s
    assert throughput is not None
    assert throughput.estimate == pytest.approx(2000)
    assert throughput.low < 2000 < throughput.high
    assert any("throughput still grew at the largest batch size, 16 (the next one exceeds the memory)" in n
               for n in found.notes)  # fmt: skip
    assert any("Batch size 1 failed" in note and "two examples" in note for note in found.notes)


def test_summary_of_a_saturated_sweep_ended_by_the_data() -> None:
    limited = BatchMeasurement(64, MeasurementOutcome.DATASET_LIMITED, "60 examples")
    found = summarize(run({8: 1e-3, 16: 2e-3, 32: 4e-3}, limited))
    assert (found.saturation_batch_size, found.largest_feasible_batch_size) == (8, 32)
    assert not any("aturation" in note for note in found.notes)


def test_an_unconfirmed_saturation_and_a_fall_are_said() -> None:
    found = summarize(run({8: 1e-3, 16: 1e-3, 32: 2.5e-3}))
    assert found.saturation_batch_size is None
    assert any("Saturation not confirmed" in note for note in found.notes)
    assert any("fell" in note and "32" in note for note in found.notes)


def test_a_sweep_in_which_nothing_ran() -> None:
    found = summarize(run({}, BatchMeasurement(1, MeasurementOutcome.TIMEOUT, "No answer in 60 s.")))
    assert found.largest_feasible_batch_size is None
    assert found.time_model is None
    assert found.notes[0] == "No batch size ran."


def test_a_noisy_measurement_is_said_to_be_uncertain() -> None:
    noisy = BatchMeasurement(
        8,
        MeasurementOutcome.OK,
        blocks=tuple(BlockTiming(1, time, 1.0) for time in (1.0, 2.0, 1.0, 3.0, 2.0)),
    )
    assert any("uncertain" in note for note in summarize(run({4: 1.0}, noisy)).notes)
