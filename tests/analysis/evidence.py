"""Evidence with a known truth: the parts that a recommendation is made from."""

import math
from collections.abc import Mapping, Sequence

from advisor.analysis.throughput import summarize_batch
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.measurement import (
    BatchMeasurement,
    BatchThroughput,
    MeasurementOutcome,
    MeasurementRun,
)
from advisor.records.scaling import BatchSizeResult, Crossing, FitOutcome, Observation, ScalingFit
from advisor.records.session import BlockTiming, MemoryUse
from advisor.records.target import Target

FINGERPRINT = Fingerprint("m", "o", "l", "shape", "content", "t", "c", "v")
TARGET = Target("loss", at_most=0.15)


def description() -> WorkloadDescription:
    return WorkloadDescription(
        name="digits-mlp",
        fingerprint=FINGERPRINT,
        target=TARGET,
        optimizer="nesterov",
        optimizer_hyperparameters={"learning_rate": 0.01, "momentum": 0.9},
        search_space={},
        examples={"train": 1397, "validation": 400},
        metrics=("loss", "accuracy"),
        initial_metrics={"loss": 2.4, "accuracy": 0.1},
        parameter_count=4810,
        configuration=Configuration(),
        environment={"tensorflow": "2.21.0"},
    )


def blocks(seconds_per_step: float, number: int = 20) -> tuple[BlockTiming, ...]:
    return tuple(BlockTiming(10, 10 * seconds_per_step, 1.0) for _ in range(number))


def measurement(batch_size: int, seconds_per_step: float) -> BatchMeasurement:
    return BatchMeasurement(
        batch_size,
        MeasurementOutcome.OK,
        blocks=blocks(seconds_per_step),
        compile_s=0.5,
        memory=MemoryUse(200 * 2**20),
        later_visits=(blocks(seconds_per_step),),
    )


def summaries(throughputs: Mapping[int, float]) -> list[BatchThroughput]:
    """Rows of a table with exact throughput (examples/s) by batch size."""
    return [summarize_batch(measurement(size, size / value)) for size, value in throughputs.items()]


def run(times: Mapping[int, float], *others: BatchMeasurement) -> MeasurementRun:
    """A sweep with exact times per step (s) by batch size, and what else was found."""
    measurements = (*(measurement(size, time) for size, time in times.items()), *others)
    return MeasurementRun(
        "digits-mlp", FINGERPRINT, Configuration(), {"tensorflow": "2.21.0"}, measurements, "2026-01-02T03:04"
    )


def result(
    batch_size: int, steps: float | None, relative: float = 0.0, seeds: int = 2, at_edge: bool = False
) -> BatchSizeResult:
    crossing = Crossing(steps, 1 if steps is None else steps * 0.98, None if steps is None else steps * 1.02)
    spread = math.exp(relative)
    return BatchSizeResult(
        batch_size=batch_size,
        best={"learning_rate": 0.001 * batch_size},
        at_edge=at_edge,
        trials=8,
        infeasible=1,
        observations=(Observation(batch_size, crossing),) * seeds,
        steps=steps,
        steps_interval=None if steps is None else Interval(steps, steps / spread, steps * spread),
        censored=steps is None,
        log_slack=0.02,
    )


def hyperbola(batch_size: float, min_steps: float, critical: float) -> float:
    return min_steps * (1 + critical / batch_size)


def results(
    batch_sizes: Sequence[int], min_steps: float, critical: float, relative: float = 0.0
) -> list[BatchSizeResult]:
    return [result(size, hyperbola(size, min_steps, critical), relative) for size in batch_sizes]


def fit(min_steps: float, critical: float, outcome: FitOutcome = FitOutcome.OK) -> ScalingFit:
    """A hyperbola known to ±5 %, with draws of that spread."""
    draws = tuple(
        (min_steps * (1 + 0.025 * low), critical * (1 - 0.025 * low), 1.0) for low in (-2, -1, 0, 1, 2)
    )

    def about(value: float) -> Interval:
        return Interval(value, 0.95 * value, 1.05 * value)

    return ScalingFit(
        outcome=outcome,
        overhead=0.2,
        min_steps=about(min_steps),
        min_examples=about(min_steps * critical),
        critical_batch_size=about(0.2 * critical),
        half_efficiency_batch_size=about(critical),
        maximum_useful_batch_size=about(10 * critical),
        sharpness=1.0,
        residual_log_rms=0.03,
        estimate=(min_steps, critical, 1.0),
        draws=draws,
    )
