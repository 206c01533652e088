"""One of each answer, as a real run would leave it."""

from dataclasses import replace

from advisor.analysis.choice import recommend_batch_size
from advisor.analysis.comparison import compare
from advisor.analysis.rule_of_thumb import rule_of_thumb
from advisor.analysis.throughput import summarize
from advisor.records.bottleneck import InputDiagnosis, PipelineStage, Remedy
from advisor.records.description import Configuration
from advisor.records.measurement import BatchMeasurement, Comparison, MeasurementOutcome, Throughput
from advisor.records.recommendation import (
    Advice,
    ExpectedSpending,
    Prices,
    RuleOfThumb,
    SpendingPlan,
    Spent,
    Wish,
)
from advisor.records.report import Report
from advisor.records.requests import BatchSizes
from advisor.records.scaling import BatchSizeResult, FitOutcome, ScalingFit
from advisor.records.session import MemoryUse
from advisor.records.target import Target
from advisor.records.trials import Study, StudyKind
from advisor.records.tuning import BestTrial, HealthCheck, TuningResult
from tests.analysis.evidence import (
    TARGET,
    blocks,
    description,
    fit,
    measurement,
    result,
    results,
    run,
)

SIZES = [8, 16, 32, 64, 128, 256, 512]
SPENT = Spent(examples=1_234_567, steps=43_210, trials=52, wall_s=41.5, evaluations=2_345)


def throughput() -> Throughput:
    times = {size: 2e-4 + 3e-6 * size for size in [*SIZES, 1024]}
    return summarize(
        run(times, BatchMeasurement(2048, MeasurementOutcome.DATASET_LIMITED, "1,397 training examples"))
    )


def hungry_throughput() -> Throughput:
    """A sweep whose step waits for its pipeline, compared with two variants."""
    diagnosis = InputDiagnosis(
        64,
        (PipelineStage("map load (data.py:7)", 9e-5), PipelineStage("shuffle and batch", 1e-5)),
        (Remedy("cache", "Cache the dataset.", 6e-3, 1e-3, 6e-3, 2e-3, "Mind the memory."),),
        ("x['blob']",),
        0.75,
    )
    waiting = replace(
        measurement(64, 6e-3),
        compute_blocks=blocks(2e-3),
        input_blocks=blocks(6e-3),
        diagnosis=diagnosis,
        memory=MemoryUse(2**30, 2**30, 2**30),
    )
    measured = summarize(run({16: 4e-3, 32: 5e-3}, waiting))
    faster = summarize(run({16: 2e-3, 32: 2.5e-3}))
    broken = Comparison("mixed_precision", {}, ("Batch size 16: no bfloat16 here.",))
    return replace(measured, comparisons=(compare("xla", measured, faster), broken))


def advice(prices: Prices | None = None, limits: Wish | None = None) -> Advice:
    """The digits, with one batch size that was not tried and one that did not reach the target."""
    prices = prices or Prices(2.5, "EUR", 350)
    found = [*results([8, 16, 64, 128, 256], 18, 90, 0.15), result(512, None)]
    return _advice(found, fit(18, 90), prices, limits)


def thumb() -> RuleOfThumb:
    found = rule_of_thumb(throughput(), BatchSizes(), "advisor recommend digits.py")
    assert found is not None
    return found


def hopeless_advice() -> Advice:
    return _advice([result(64, None)], ScalingFit(FitOutcome.INSUFFICIENT, 0.2), Prices())


def _advice(
    found: list[BatchSizeResult], fitted: ScalingFit, prices: Prices, limits: Wish | None = None
) -> Advice:
    measured, wish = throughput(), limits or Wish()
    answers, recommendation, costs = recommend_batch_size(
        description(), measured, found, fitted, prices, wish, 0, "digits.py"
    )
    return Advice(
        description(), measured, prices, tuple(found), fitted, costs, answers, recommendation, SPENT
    )


def study(name: str = "digits-mlp/0123abcd/tune/b64", diff: str | None = None) -> Study:
    return Study(
        name=name,
        kind=StudyKind.TUNE,
        workload="digits-mlp",
        fingerprint="0123abcd" * 8,
        batch_size=64,
        target=TARGET,
        configuration=Configuration(),
        settings={"max_train_steps": 450},
        command="advisor tune --batch 64 --trials 20",
        revision="8dc5261aa7b3c2d1e0f9",
        uncommitted_diff=diff,
        note="",
        created_at="2026-01-02T03:04:05+00:00",
    )


def tuning(best: bool = True) -> TuningResult:
    hyperparameters = {"learning_rate": 0.03125, "momentum": 0.9, "units": 128, "activation": "[relu]"}
    return TuningResult(
        study=study(),
        search_space={},
        trials={"complete": 17, "infeasible": 3, "failed": 0},
        best=BestTrial(7, hyperparameters, 0.08123, 312, "/work/advisor-artifacts/digits/trial-7.npz")
        if best
        else None,
        health=(
            HealthCheck("edge", "ok", "The best learning rate lies well inside its range."),
            HealthCheck("diverged", "warn", "3 of 20 trials diverged, all with a learning rate above 0.6."),
        ),
        spent=SPENT,
        next="advisor report digits.py",
    )


def report() -> Report:
    return Report(
        workload="digits-mlp",
        throughput=throughput(),
        advice=advice(),
        studies=(tuning(),),
        notes=("The measurement is stale: the workload or the machine has changed since.",),
        next="advisor dashboard",
    )


def empty_report() -> Report:
    return Report("digits-mlp", None, None, (), (), "advisor measure")


def spending() -> SpendingPlan:
    expected = ExpectedSpending(20, 123_456, 31.24, 0.00868, 0.0217, "as the 12 recorded so far")
    return SpendingPlan((8, 16, 32), 98, 1_234_567, 312.4, 0.0868, 0.217, "EUR", 12, expected)


ACCURACY = Target("accuracy", at_least=0.97)
