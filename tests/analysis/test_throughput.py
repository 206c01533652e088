"""The table of a sweep, its limits, and what is said of them."""

from collections.abc import Mapping

import pytest

from advisor.analysis.throughput import saturation_batch_size, summarize
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome
from advisor.records.session import BlockTiming
from tests.analysis.evidence import run, summaries


@pytest.mark.parametrize(
    ("throughputs", "expected"),
    [
        ({1: 100, 2: 200, 4: 400}, None),
        ({1: 100, 2: 200, 4: 205, 8: 206}, 2),
        ({1: 100, 2: 200, 4: 150, 8: 390, 16: 780}, None),  # a single dip
        ({1: 100, 2: 200, 4: 150, 8: 201, 16: 203}, 2),  # a dip whose recovery is no growth
        ({1: 100, 2: 200, 4: 160, 8: 170, 16: 400, 32: 404, 64: 405}, 16),  # two dips, and then growth
        ({1: 100, 2: 200, 4: 204, 5: 203}, None),  # sizes close together are one
        ({1: 100, 2: 200, 4: 204}, None),  # one size is not enough
        ({1: 100, 4: 115, 16: 130}, None),  # 7 % per doubling is growth
        ({1: 100, 4: 105, 16: 110}, 1),
        ({1: 100}, None),
        ({}, None),
    ],
)
def test_saturation_needs_two_sizes_in_a_row(throughputs: Mapping[int, float], expected: int | None) -> None:
    assert saturation_batch_size(summaries(throughputs)) == expected


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
