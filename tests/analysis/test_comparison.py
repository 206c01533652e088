"""Time per step with and without an option, at the batch sizes that ran with both."""

import pytest

from advisor.analysis.comparison import compare
from advisor.analysis.throughput import summarize
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome
from tests.analysis.evidence import run


def test_a_speedup_is_time_without_over_time_with() -> None:
    without = summarize(run({8: 1e-3, 16: 2e-3, 32: 4e-3}))
    lost = BatchMeasurement(64, MeasurementOutcome.OUT_OF_MEMORY, "Too large.\nand more")
    found = compare("xla", without, summarize(run({16: 1e-3, 32: 8e-3}, lost)))
    assert found.variant == "xla"
    assert {size: one.estimate for size, one in found.speedups.items()} == pytest.approx({16: 2.0, 32: 0.5})
    assert all(one.low < one.estimate < one.high for one in found.speedups.values())
    assert found.failures == ("Batch size 64: Too large.",)
