"""One of each record, with every field that a store could lose filled in."""

import math
from dataclasses import replace

from advisor.records.bottleneck import (
    Bottleneck,
    BottleneckKind,
    InputDiagnosis,
    PipelineStage,
    Remedy,
)
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.measurement import (
    BatchMeasurement,
    BatchThroughput,
    Comparison,
    MeasurementOutcome,
    Throughput,
    TimeModel,
)
from advisor.records.recommendation import (
    Advice,
    Answers,
    Objective,
    Prices,
    Recommendation,
    ResourceCost,
    Spent,
)
from advisor.records.scaling import BatchSizeResult, Crossing, FitOutcome, Observation, ScalingFit
from advisor.records.search_space import Categorical, Float, HyperparameterValue, Int, SearchSpace
from advisor.records.session import BlockTiming, MemoryUse
from advisor.records.target import Target
from advisor.records.trials import CurvePoint, Study, StudyKind, TrialPlan, TrialPurpose, study_name

FINGERPRINT = Fingerprint("m", "o", "l", "s", "c", "t", "2 cpu", "keras 3")
CONFIGURATION = Configuration(devices=2)
TARGET = Target("accuracy", at_least=0.97)
INTERVAL = Interval(2.0, 1.5, math.inf, 0.9)


def measurement(batch_size: int, seconds: float = 0.25) -> BatchMeasurement:
    """Return a measured batch size with a block of everything that can be timed."""
    return BatchMeasurement(
        batch_size,
        MeasurementOutcome.OK,
        "",
        warm_up_blocks=(BlockTiming(steps=5, seconds=9.0, training_loss=2.3),),
        blocks=(BlockTiming(steps=20, seconds=seconds, training_loss=2.1),),
        compile_s=1.25,
        memory=MemoryUse(2**33, 2**35, 2**34),
        compute_blocks=(BlockTiming(steps=20, seconds=0.2, training_loss=2.1, host_seconds=0.1),),
        input_blocks=(BlockTiming(steps=10, seconds=0.1, training_loss=0.0),),
        worker_blocks=((BlockTiming(steps=5, seconds=0.1, training_loss=2.0),),),
        competing_cpus=0.5,
        gpu_processes=("trainer (7)",),
        diagnosis=diagnosis(),
        later_visits=((BlockTiming(steps=20, seconds=0.3, training_loss=2.0),),),
        together_blocks=(BlockTiming(steps=20, seconds=0.4, training_loss=2.0),),
        probed_longest=True,
    )


def study(kind: StudyKind = StudyKind.TUNE) -> Study:
    """Return a study that has not been recorded."""
    return Study(
        name=study_name("digits", "0123456789abcdef", kind, 64),
        kind=kind,
        workload="digits",
        fingerprint="0123456789abcdef",
        batch_size=64,
        target=TARGET,
        configuration=CONFIGURATION,
        settings={"max_train_steps": 5000, "ranges": {"learning_rate": [1e-3, 1.0]}, "schedule": None},
        command="advisor tune --batch 64",
        revision="8dc5261",
        uncommitted_diff="--- a\n+++ b\n",
        note="",
    )


def named(name: str, kind: StudyKind = StudyKind.TUNE, target: Target = TARGET) -> Study:
    """Return a study of that name, kind and target."""
    return replace(study(), name=name, kind=kind, target=target)


def plan(learning_rate: float = 0.1) -> TrialPlan:
    """Return the plan of a trial that selects."""
    values: dict[str, HyperparameterValue] = {
        "learning_rate": learning_rate,
        "units": 64,
        "activation": "relu",
        "bias": True,
    }
    return TrialPlan(values, 17, TrialPurpose.SELECT, 5000)


def point(step: int) -> CurvePoint:
    """Return what was seen after ``step`` steps."""
    return CurvePoint(step, {"loss": 1 / (1 + step), "accuracy": 0.5}, 0.7, 0.125, 0.25)


def description(name: str) -> WorkloadDescription:
    """Return a workload whose search space has a distribution of each kind."""
    space: SearchSpace = {
        "dropout": Float(0.0, 0.5, default=0.0),
        "momentum": Float(0.5, 0.999, log_one_minus=True),
        "units": Int(16, 256, default=64, log=True),
        "depth": Int(1, 3),
        "activation": Categorical(("relu", 1, 2.0, True), default="relu"),
    }
    return WorkloadDescription(
        name=name,
        fingerprint=FINGERPRINT,
        target=TARGET,
        optimizer="nesterov",
        optimizer_hyperparameters={"learning_rate": 0.01, "momentum": 0.9},
        search_space=space,
        examples={"train": 1437, "validation": 360},
        metrics=("loss", "accuracy"),
        initial_metrics={"loss": 2.4, "accuracy": 0.1},
        parameter_count=4810,
        configuration=CONFIGURATION,
        environment={"python": "3.11"},
    )


def advice(recommended: bool = True) -> Advice:
    """Return advice, with or without a recommendation."""
    return Advice(
        description=description("digits"),
        throughput=_throughput(),
        prices=Prices(2.5, "EUR", 350.0),
        results=(_reached(), _not_reached()),
        fit=_fit(),
        costs=(ResourceCost(64, INTERVAL, INTERVAL, INTERVAL, INTERVAL, None, INTERVAL, True),),
        answers=Answers(512, 256, 91.5, 256, 64),
        recommendation=_recommendation() if recommended else None,
        spent=Spent(100_000, 2_000, 12, 61.5),
    )


def bottleneck() -> Bottleneck:
    """Return a verdict with everything that one can say."""
    shares = {BottleneckKind.INPUT: 0.5, BottleneckKind.COMPUTE: 0.5}
    return Bottleneck(BottleneckKind.INPUT, 64, INTERVAL, "It waits.", "It is slow.", ("Cache.",), shares)


def diagnosis() -> InputDiagnosis:
    """Return what was found in an input pipeline, with everything that one can find."""
    remedy = Remedy("cache", "Cache it.", 0.2, 0.1, 0.25, 0.15, "Mind the memory.", 1.5)
    stages = (PipelineStage("map", 1e-3),)
    return InputDiagnosis(64, stages, (remedy,), ("x['blob']",), 0.25, 2, ("A stage is unknown.",))


def _throughput() -> Throughput:
    row = BatchThroughput(64, MeasurementOutcome.OK, "", INTERVAL, INTERVAL, 1.25, None, 40, None)
    lost = BatchThroughput(512, MeasurementOutcome.OUT_OF_MEMORY, "no room", None, None, None, None, 0, None)
    moment, environment = "2030-01-02T03:04:05+00:00", {"python": "3.11"}
    model = TimeModel(1e-3, 2e-6, 0.03)
    return Throughput(
        *("digits", "abc", CONFIGURATION, environment, moment, (row, lost), 64, None, model),
        bottleneck=bottleneck(),
        diagnosis=diagnosis(),
        comparisons=(Comparison("xla", {64: INTERVAL}, ("Batch size 512: no room",)),),
        notes=("a note",),
    )


def _reached() -> BatchSizeResult:
    seen = (Observation(64, Crossing(18.5, 18.0, 19.0)), Observation(64, Crossing(None, 50.0, None)))
    return BatchSizeResult(64, {"learning_rate": 0.1}, False, 5, 1, seen, 18.5, INTERVAL, False, 0.05)


def _not_reached() -> BatchSizeResult:
    return BatchSizeResult(512, None, True, 5, 5, (), None, None, True, math.inf)


def _fit() -> ScalingFit:
    return ScalingFit(
        outcome=FitOutcome.LOWER_BOUND,
        overhead=0.2,
        min_steps=INTERVAL,
        critical_batch_size=INTERVAL,
        extrapolated=("critical_batch_size",),
        estimate=(18.0, 91.5, 1.2),
        draws=((18.0, 91.5, 1.2), (17.0, 99.0, 1.0)),
    )


def _recommendation() -> Recommendation:
    return Recommendation(
        Objective.TIME,
        256,
        INTERVAL,
        INTERVAL,
        None,
        0.8,
        "It is fastest.",
        ("Two sizes only.",),
        "advisor tune",
    )
