"""The cases that ``verdicts.py`` runs by default: ten planted faults, and five healthy pipelines.

Each takes less than half a minute on two cores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import verdict_workloads as made

from advisor import Workload
from advisor.records.bottleneck import BottleneckKind
from advisor.records.description import Configuration, Fingerprint
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, MeasurementRun
from advisor.records.session import BlockTiming


@dataclass(frozen=True)
class Case:
    """A workload, or a measured sweep, with the verdict that is right for it.

    ``expected`` None is a healthy one, for which nothing in the workload is to be blamed. ``choices`` are
    for ``advisor.measure``. ``stage`` has to be part of the slowest stage's name, ``unused`` one of the
    unused features.
    """

    name: str
    workload: Workload | MeasurementRun
    expected: BottleneckKind | None
    choices: Mapping[str, Any] = field(default_factory=dict)
    stage: str = ""
    unused: str = ""


def workload(name: str, build_model: Any, data: Any) -> Workload:
    return Workload(name, build_model, data, keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def sweep_of_two_workers() -> MeasurementRun:
    rng = np.random.default_rng(0)

    def blocks(seconds_per_step: float) -> tuple[BlockTiming, ...]:
        return tuple(BlockTiming(10, 10 * seconds_per_step * rng.lognormal(0, 0.02), 1.0) for _ in range(20))

    def measurement(batch_size: int) -> BatchMeasurement:
        fast_s = 0.002 + 20e-6 * batch_size / 2
        slow_s = 2.5 * fast_s
        return BatchMeasurement(
            batch_size,
            MeasurementOutcome.OK,
            blocks=blocks(slow_s + 0.0005),
            compute_blocks=blocks(slow_s + 0.0004),
            input_blocks=blocks(0.1 * fast_s),
            worker_blocks=(blocks(fast_s), blocks(slow_s)),
        )

    return MeasurementRun(
        "two-workers",
        Fingerprint("model", "optimizer", "loss", "shape", "content", "target", "configuration", "versions"),
        Configuration(workers=2),
        {},
        tuple(measurement(2**power) for power in range(5, 11)),
        "2026-01-01T00:00",
    )


FEW = {"batch_sizes": [8, 32, 128]}
UP_TO_64 = {"batch_sizes": {"maximum": 64}}
UP_TO_128 = {"batch_sizes": {"minimum": 4, "maximum": 128}}
LITTLE_MEMORY = {"batch_sizes": [8, 16, 32, 64, 128], "memory_limit": "1.1GiB"}

LOOKED_UP = workload("looked-up", made.small_model, made.looked_up_data)
GENERATED = workload("generated", made.small_model, made.generated_data)
PICTURED = workload("pictured", made.signal_model, made.pictured_data)
SOURCES = workload("sources", made.source_model, made.source_data)
TINY = workload("deep-and-tiny", made.deep_and_tiny_model, made.many_examples)
CONVOLUTIONS = workload("convolutions", made.convolutional_model, made.pictures)
WATCHED = workload("watched", made.watched_model, made.middling_data)
HUNGRY = workload("memory-hungry", made.memory_hungry_model, made.middling_data)
HUNDRED = workload("hundred-examples", made.middling_model, made.hundred_examples)

PLANTS = [
    Case("sleep in map", LOOKED_UP, BottleneckKind.INPUT, FEW, "look_up"),
    Case("slow Python generator", GENERATED, BottleneckKind.INPUT, FEW, "generator"),
    Case("large unused feature", PICTURED, BottleneckKind.INPUT, FEW, "decode_picture", "x['picture']"),
    Case("throttled file reads", SOURCES, BottleneckKind.INPUT, FEW, "read_source"),
    Case("dispatch of tiny layers", TINY, BottleneckKind.DISPATCH, UP_TO_64),
    Case("convolutions", CONVOLUTIONS, BottleneckKind.COMPUTE, UP_TO_128),
    Case("Python in the step", WATCHED, BottleneckKind.HOST, UP_TO_128),
    Case("too little memory", HUNGRY, BottleneckKind.MEMORY, LITTLE_MEMORY),
    Case("100 examples", HUNDRED, BottleneckKind.DATA),
    Case("slow worker among two", sweep_of_two_workers(), BottleneckKind.SYNCHRONIZATION),
]

ARRAYS = workload("arrays", made.middling_model, made.middling_data)
AUGMENTED = workload("augmented", made.convolutional_model, made.augmented_data)
CACHED = workload("cached", made.wide_model, made.cached_data)
RECORDED = workload("recorded", made.large_model, made.recorded_data)
SLICED = workload("sliced", made.large_model, made.sliced_data)

HEALTHY = [
    Case("arrays", ARRAYS, None, FEW),
    Case("parallel map, prefetch", AUGMENTED, None, FEW),
    Case("cached", CACHED, None, FEW),
    Case("TFRecord, parallel parse", RECORDED, None, FEW),
    Case("from_tensor_slices", SLICED, None, FEW),
]
