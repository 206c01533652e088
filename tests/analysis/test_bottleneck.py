"""The verdict on a step of known parts is the planted one, and says what was measured."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.bottleneck import find_bottleneck, is_input_bound
from advisor.analysis.bottleneck_words import Growth
from advisor.analysis.step_parts import StepParts
from advisor.analysis.throughput import step_parts, summarize
from advisor.records.bottleneck import Bottleneck, BottleneckKind, InputDiagnosis, PipelineStage, Remedy
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, Throughput, TimeModel
from advisor.records.session import BlockTiming, MemoryUse
from tests.analysis.evidence import blocks, measurement, run

SATURATED = Growth(still_grew=False, time_model=TimeModel(1e-4, 1e-4, 0.01))


def parts(
    time_s: float,
    compute_s: float | None = None,
    input_s: float | None = None,
    host_s: float = 0.0,
    workers_s: tuple[float, ...] = (),
    diagnosis: InputDiagnosis | None = None,
) -> StepParts:
    """What was measured of a step of exact parts."""
    timed = blocks(compute_s) if compute_s else ()
    return step_parts(
        replace(
            measurement(64, time_s),
            compute_blocks=tuple(replace(block, host_seconds=host_s * block.steps) for block in timed),
            input_blocks=blocks(input_s) if input_s else (),
            worker_blocks=tuple(blocks(seconds) for seconds in workers_s),
            diagnosis=diagnosis,
        )
    )


def swept(times: Mapping[int, float], *others: BatchMeasurement) -> Throughput:
    return summarize(run(times, *others))


def text(found: Bottleneck) -> str:
    return " ".join((found.verdict, found.why, *found.next))


@given(st.floats(0.01, 100.0), st.floats(1e-6, 1.0))
def test_a_pipeline_slower_than_the_computation_is_the_bottleneck(ratio: float, compute_s: float) -> None:
    """Overlap is perfect: a step takes the longer of both."""
    input_s = ratio * compute_s
    step = parts(max(compute_s, input_s), compute_s, input_s)
    found = find_bottleneck(step, Growth(still_grew=False))
    stall = found.shares[BottleneckKind.INPUT]
    assert stall == pytest.approx(max(0.0, 1 - 1 / ratio), abs=1e-6)
    if ratio > 1.2:
        assert found.kind is BottleneckKind.INPUT
        assert found.share is not None
        assert found.share.low <= stall <= found.share.high
    if ratio < 1.05:
        assert found.kind is BottleneckKind.COMPUTE


def test_a_healthy_pipeline_is_hardly_ever_accused() -> None:
    """Each rate drifts by itself, as on a shared machine; the pipeline takes 70 % of the computation."""
    random = np.random.default_rng(1)
    accused = 0
    for _ in range(300):
        both, compute, pipeline = np.exp(random.normal(0, 0.03, 3))
        accused += is_input_bound(parts(1e-3 * both, 1e-3 * compute, 7e-4 * pipeline))
    assert accused == 0


def test_a_slow_pipeline_is_hardly_ever_missed() -> None:
    random = np.random.default_rng(2)
    found = 0
    for _ in range(300):
        both, compute, pipeline = np.exp(random.normal(0, 0.03, 3))
        found += is_input_bound(parts(1.5e-3 * both, 1e-3 * compute, 1.5e-3 * pipeline))
    assert found == 300


def test_parts_that_were_not_timed_accuse_nobody() -> None:
    assert not is_input_bound(parts(1e-3))
    assert not is_input_bound(parts(1e-3, compute_s=1e-4))
    found = find_bottleneck(parts(1e-3), Growth(still_grew=False))
    assert (found.kind, found.share, dict(found.shares)) == (BottleneckKind.UNKNOWN, None, {})
    nothing = find_bottleneck(None, Growth(still_grew=False))
    assert (nothing.kind, nothing.batch_size) == (BottleneckKind.UNKNOWN, None)


def test_python_functions_in_the_step_are_named_with_their_share() -> None:
    found = find_bottleneck(parts(1e-2, 1e-2, 1e-4, host_s=4e-3), SATURATED)
    assert found.kind is BottleneckKind.HOST
    assert found.share is not None
    assert found.share.estimate == pytest.approx(0.4)
    assert "40 % of its time" in found.verdict
    assert "4.00 ms are spent in them" in found.why


def test_of_two_faults_the_costlier_one_is_told() -> None:
    waiting = find_bottleneck(parts(1e-2, 2e-3, 1e-2, host_s=1.5e-3), SATURATED)
    calling = find_bottleneck(parts(1e-2, 8e-3, 1e-2, host_s=6e-3), SATURATED)
    assert (waiting.kind, calling.kind) == (BottleneckKind.INPUT, BottleneckKind.HOST)


def test_a_slow_worker_is_named() -> None:
    found = find_bottleneck(parts(3.1e-3, 3.1e-3, 1e-4, workers_s=(1e-3, 3e-3)), SATURATED)
    assert found.kind is BottleneckKind.SYNCHRONIZATION
    assert found.share is not None
    assert found.share.estimate == pytest.approx(1 - 2 / 3.1, abs=0.01)
    assert "worker 1, 3.00 × as slow" in text(found)


def test_equal_workers_that_wait_need_a_larger_batch_or_a_faster_connection() -> None:
    found = find_bottleneck(parts(2e-3, 2e-3, 1e-4, workers_s=(1e-3, 1e-3)), SATURATED)
    assert found.kind is BottleneckKind.SYNCHRONIZATION
    assert "larger batch" in text(found)


def test_workers_in_step_are_not_accused() -> None:
    found = find_bottleneck(parts(1.02e-3, 1.02e-3, 1e-4, workers_s=(1e-3, 1e-3)), SATURATED)
    assert found.kind is BottleneckKind.COMPUTE


def test_what_ends_the_growth_of_throughput_is_told_apart() -> None:
    growing = {size: 1e-3 + 1e-5 * size for size in (8, 16, 32, 64)}
    memory = BatchMeasurement(128, MeasurementOutcome.OUT_OF_MEMORY, "ResourceExhaustedError")
    data = BatchMeasurement(128, MeasurementOutcome.DATASET_LIMITED, "100 examples")
    failed = BatchMeasurement(128, MeasurementOutcome.FAILED, "ValueError")
    kinds = [swept(growing, *others).bottleneck.kind for others in ((memory,), (data,), (failed,), ())]  # type: ignore[union-attr]
    assert kinds == [
        BottleneckKind.MEMORY,
        BottleneckKind.DATA,
        BottleneckKind.DISPATCH,
        BottleneckKind.DISPATCH,
    ]


def test_a_step_of_constant_time_is_dispatch_whatever_ended_the_sweep() -> None:
    constant = {size: 1e-3 + 1e-7 * size for size in (8, 16, 32, 64)}
    data = BatchMeasurement(128, MeasurementOutcome.DATASET_LIMITED, "100 examples")
    found = swept(constant, data).bottleneck
    assert found is not None
    assert found.kind is BottleneckKind.DISPATCH
    assert "99 % of a step" in found.verdict


def test_growth_with_room_above_is_unknown() -> None:
    growing = {size: 1e-4 + 1e-5 * size for size in (8, 16, 32)}
    found = swept(growing).bottleneck
    assert found is not None
    assert found.kind is BottleneckKind.UNKNOWN
    assert "Measure larger ones, such as `--batch-sizes 64,128`." in text(found)


def test_one_batch_size_shows_no_growth() -> None:
    limited = BatchMeasurement(16, MeasurementOutcome.DATASET_LIMITED, "8 examples")
    found = swept({8: 1e-3}, limited)
    assert found.bottleneck is not None
    assert found.bottleneck.kind is BottleneckKind.UNKNOWN
    assert "the only one that ran" in found.bottleneck.verdict
    assert found.notes == ("One batch size alone says nothing of growth and saturation.",)


def test_no_step_waits_longer_for_data_than_the_pipeline_takes() -> None:
    found = find_bottleneck(parts(8e-4, compute_s=2.5e-4, input_s=1e-4), SATURATED)
    assert found.kind is BottleneckKind.COMPUTE
    assert found.shares[BottleneckKind.INPUT] == pytest.approx(1 / 8)


def test_parts_that_take_longer_than_the_whole_are_no_verdict() -> None:
    found = find_bottleneck(parts(5e-2, compute_s=5e-3, input_s=0.2), SATURATED)
    assert found.kind is BottleneckKind.UNKNOWN
    assert "vary too much" in found.verdict and "--again" in text(found)


def test_a_pipeline_that_takes_the_processors_from_the_computation_is_named() -> None:
    found = find_bottleneck(parts(1.9e-3, compute_s=1e-3, input_s=1e-3), SATURATED)
    assert found.kind is BottleneckKind.INPUT
    assert "take the processors from one another" in found.why
    light = find_bottleneck(parts(1.15e-3, compute_s=1e-3, input_s=2e-4), SATURATED)
    assert light.kind is BottleneckKind.COMPUTE


def test_a_fixed_part_is_believed_only_where_the_line_fits() -> None:
    bad = Growth(still_grew=False, time_model=TimeModel(9e-4, 1e-6, 0.5))
    assert find_bottleneck(parts(1e-3, compute_s=9e-4, input_s=1e-4), bad).kind is BottleneckKind.COMPUTE
    good = Growth(still_grew=False, time_model=TimeModel(9e-4, 1e-6, 0.05))
    assert find_bottleneck(parts(1e-3, compute_s=9e-4, input_s=1e-4), good).kind is BottleneckKind.DISPATCH


def test_a_saturated_device_is_busy_with_arithmetic() -> None:
    found = swept({size: 1e-5 + 1e-4 * size for size in (8, 16, 32, 64)})
    assert found.saturation_batch_size == 8
    assert found.bottleneck is not None
    assert (found.bottleneck.kind, found.bottleneck.batch_size) == (BottleneckKind.COMPUTE, 8)


def test_an_input_verdict_says_which_stage_is_slow_and_what_helps_most() -> None:
    diagnosis = InputDiagnosis(
        64,
        (PipelineStage("generator rows", 1e-6), PipelineStage("map load", 9e-5)),
        (
            Remedy("cache", "Cache it.", 1e-2, 5e-3, 1e-2, 5e-3, "Mind the memory."),
            Remedy("parallel map", "Map in parallel.", 1e-2, 1e-3, 1e-2, 2e-3, "", 1.1),
            Remedy("2 producers", "Use two.", 1e-2, 1e-2, 1e-2, 1e-2),
            Remedy("parallel reads", "Read in parallel.", 1e-2, 5e-3, 1e-2, 5e-3, "", 0.9),
        ),
        notes=("The reads could not be tried.",),
    )
    found = find_bottleneck(parts(1e-2, 2e-3, 1e-2, diagnosis=diagnosis), SATURATED)
    assert "80 % of its time" in found.verdict
    assert "pipeline alone takes 10.0 ms, the computation alone 2.00 ms, both together 10.0 ms" in found.why
    assert found.next[0] == "Its time goes to map load (99 %)."
    assert found.next[1] == "Map in parallel. Measured: 5.00 × as fast (10.0 ms → 2.00 ms per step)."
    assert found.next[2].endswith("Mind the memory.")
    assert (
        found.next[3]
        == "Tried without a clear gain: 2 producers (1.00 × as fast), parallel reads (2.00 × as fast)."
    )
    assert found.next[4] == "The reads could not be tried."
    assert BottleneckKind.DISPATCH not in found.shares


def test_unused_features_competing_load_and_scarce_memory_are_said_whatever_the_verdict() -> None:
    diagnosis = InputDiagnosis(16, unused_features=("x['blob']",), unused_share=0.5)
    disturbed = replace(
        measurement(16, 2e-3), competing_cpus=1.3, gpu_processes=("trainer (7)",), diagnosis=diagnosis
    )
    scarce = replace(measurement(32, 4e-3), memory=MemoryUse(95, 100, 95))
    found = swept({8: 1.9e-3}, disturbed, scarce)
    notes = " ".join(found.notes)
    assert "x['blob'] (50 %" in notes
    assert "Other programs used the GPU meanwhile: trainer (7)." in notes
    assert "up to 1.30 processors busy while batch size 16" in notes
    assert "Batch size 32 ran with less than 10 % of the memory free" in notes
    assert [row.near_memory_limit for row in found.table] == [False, False, True]


def test_the_parts_are_in_the_table() -> None:
    measured = replace(measurement(8, 1e-3), compute_blocks=blocks(8e-4), input_blocks=blocks(2e-4))
    (row,) = summarize(run({}, measured)).table
    assert row.compute_time_s is not None
    assert row.input_time_s is not None
    assert (row.compute_time_s.estimate, row.input_time_s.estimate) == pytest.approx((8e-4, 2e-4))


def test_the_warm_up_of_a_part_does_not_count() -> None:
    slow = (BlockTiming(10, 1.0, 1.0),) * 3
    measured = replace(measurement(8, 1e-3), compute_blocks=(*slow, *blocks(8e-4)))
    (row,) = summarize(run({}, measured)).table
    assert row.compute_time_s is not None
    assert row.compute_time_s.estimate == pytest.approx(8e-4)


def test_a_slow_pipeline_whose_times_vary_too_much_is_neither_blamed_nor_cleared() -> None:
    random = np.random.default_rng(3)
    times = 1e-3 * np.exp(random.normal(0, 1, 7))
    varying = tuple(BlockTiming(1, seconds, 1.0) for seconds in times)
    compute_s, input_s = (float(share * times[1:].mean()) for share in (0.5, 1.0))
    parts_timed = {"compute_blocks": blocks(compute_s), "input_blocks": blocks(input_s)}
    step = step_parts(replace(measurement(64, 2e-3), blocks=varying, later_visits=(), **parts_timed))
    for growth in (SATURATED, Growth(still_grew=True)):
        found = find_bottleneck(step, growth)
        assert found.kind is BottleneckKind.UNKNOWN
        assert "vary too much" in found.verdict
