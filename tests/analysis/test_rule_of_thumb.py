"""The rule of thumb is the largest batch size that ran, but none above saturation."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.rule_of_thumb import rule_of_thumb
from advisor.analysis.throughput import summarize
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, Throughput
from advisor.records.recommendation import RuleOfThumb
from advisor.records.requests import BatchSizes
from tests.analysis.evidence import run

FLAT = {8: 1e-3, 16: 1e-3, 32: 1e-3}
SATURATED = {8: 1e-3, 16: 1.05e-3, 32: 2e-3, 64: 4e-3}


def measured(times: Mapping[int, float], *others: BatchMeasurement) -> Throughput:
    return summarize(run(times, *others))


def thumb(throughput: Throughput, asked: BatchSizes | None = None) -> RuleOfThumb:
    found = rule_of_thumb(throughput, asked or BatchSizes(), "advisor recommend")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (MeasurementOutcome.OUT_OF_MEMORY, "a larger one, 64, runs out of memory"),
        (MeasurementOutcome.DATASET_LIMITED, "the training split cannot fill a larger one"),
        (MeasurementOutcome.TIMEOUT, "a larger one, 64, did not answer in time"),
    ],
)
def test_the_largest_that_ran_with_what_ended_it(outcome: MeasurementOutcome, words: str) -> None:
    found = thumb(measured(FLAT, BatchMeasurement(64, outcome)))
    assert (found.batch_size, found.next) == (32, "advisor recommend")
    assert found.why == f"Batch size 32 is the largest that ran: {words}."
    assert "rule of thumb and not an answer" in found.caveats[0]


def test_nothing_above_saturation() -> None:
    throughput = measured(SATURATED)
    assert throughput.saturation_batch_size == 16
    found = thumb(throughput)
    assert found.batch_size == 16
    assert "64 runs too" in found.why and not any("saturation was not seen" in each for each in found.caveats)


def test_saturation_that_was_not_seen_and_scarce_memory_are_said() -> None:
    throughput = measured(FLAT)
    scarce = replace(
        throughput, table=tuple(replace(row, near_memory_limit=True) for row in throughput.table)
    )
    said = thumb(scarce)
    assert "no larger one was measured" in said.why
    assert any("saturation was not seen" in each for each in said.caveats)
    assert any("little memory to spare" in each for each in said.caveats)


def test_only_what_was_asked_for_is_named() -> None:
    throughput = measured(FLAT)
    listed, bounded = thumb(throughput, BatchSizes(listed=(8, 16))), thumb(throughput, BatchSizes(maximum=20))
    assert (listed.batch_size, bounded.batch_size) == (16, 16)
    assert "no larger one was asked for" in listed.why
    assert thumb(measured(SATURATED), BatchSizes(minimum=32)).batch_size == 32
    assert rule_of_thumb(throughput, BatchSizes(minimum=64), "") is None


@given(st.lists(st.floats(1e-4, 1e-1), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_it_ran_and_is_not_above_saturation(times: list[float]) -> None:
    throughput = measured({2**power: time for power, time in enumerate(times)})
    found, saturation = thumb(throughput), throughput.saturation_batch_size
    assert throughput.time_per_step_s(found.batch_size) is not None
    assert found.batch_size <= (saturation or 2 ** len(times))
