"""JSON has exactly the documented fields, and nothing that JSON does not know."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from advisor.records.intervals import Interval
from advisor.records.recommendation import Prices, Wish
from advisor.reporting import json_output
from tests.reporting import evidence

INTERVAL = {"estimate", "low", "high", "level"}
MEASURE = {
    "workload", "fingerprint", "configuration", "environment", "devices", "measurements",
    "largest_feasible_batch_size", "saturation_batch_size", "bottleneck", "diagnosis", "time_model",
    "comparisons", "notes",
}  # fmt: skip
MEASUREMENT = {
    "batch_size", "outcome", "detail", "time_per_step_s", "throughput_examples_per_s", "compute_time_s",
    "input_time_s", "compile_s", "peak_memory_bytes", "near_memory_limit", "steps_timed",
    "doubling_efficiency", "doubling_gain",
}  # fmt: skip
RECOMMEND = {
    "configuration", "target", "currency", "steps_to_target", "fit", "recommendation", "answers", "spent",
    "noise_scale", "further",
}  # fmt: skip
STEPS = {
    "batch_size", "steps", "steps_interval", "censored", "trials", "infeasible", "best", "at_edge",
    "time_per_step_s", "time_to_target_s", "device_hours", "money", "energy_kwh",
}  # fmt: skip
FIT = {
    "outcome", "min_steps", "min_examples", "critical_batch_size", "overhead", "half_efficiency_batch_size",
    "maximum_useful_batch_size", "extrapolated", "sharpness", "residual_log_rms",
}  # fmt: skip
RECOMMENDATION = {
    "rule_of_thumb", "objective", "batch_size", "time_to_target_s", "device_hours", "money", "stability",
    "why", "caveats", "unmet", "pareto", "consumption", "break_even", "next",
}  # fmt: skip
ANSWERS = {"largest_feasible", "fastest_per_example", "critical", "fastest_to_target", "cheapest_to_target"}
SPENT = {"examples", "steps", "trials", "wall_s", "evaluations"}
TUNE = {"study", "configuration", "batch_size", "trials", "best", "health", "seed_spread", "spent"}
BEST = {"number", "hyperparameters", "value", "step", "checkpoint"}
CONFIGURATION = {"workers", "devices", "device_kind", "precision", "xla", "steps_per_call"}
BOTTLENECK = {"kind", "batch_size", "share", "shares", "verdict", "why", "next"}


def sent(value: Any) -> Any:
    """Return what a program reads from what is written."""
    return json.loads(json.dumps(value, allow_nan=False))


def test_measure() -> None:
    found = sent(json_output.measure(evidence.throughput()))
    assert set(found) == MEASURE
    assert set(found["configuration"]) == CONFIGURATION
    assert found["devices"] == 1
    assert set(found["time_model"]) == {"fixed_s", "per_example_s", "residual_log_rms"}
    assert set(found["bottleneck"]) == BOTTLENECK
    assert (found["bottleneck"]["kind"], found["bottleneck"]["batch_size"]) == ("compute", 1024)
    assert (found["diagnosis"], found["comparisons"]) == (None, [])
    assert (found["largest_feasible_batch_size"], found["saturation_batch_size"]) == (1024, None)
    for row in found["measurements"]:
        assert set(row) == MEASUREMENT
    ran, limited = found["measurements"][0], found["measurements"][-1]
    assert set(ran["time_per_step_s"]) == set(ran["throughput_examples_per_s"]) == INTERVAL
    assert ran["time_per_step_s"]["estimate"] == pytest.approx(2.24e-4)
    assert (ran["outcome"], limited["outcome"]) == ("ok", "dataset_limited")
    assert limited["time_per_step_s"] is None
    assert limited["detail"] == "1,397 training examples"
    assert (ran["compute_time_s"], ran["input_time_s"]) == (None, None)


def test_recommend() -> None:
    advice = evidence.advice()
    found = sent(json_output.recommend(advice))
    assert set(found) == RECOMMEND
    assert found["target"] == {"metric": "loss", "at_least": None, "at_most": 0.15}
    assert [set(row) for row in found["steps_to_target"]] == [STEPS] * len(advice.results)
    first, last = found["steps_to_target"][0], found["steps_to_target"][-1]
    assert first["best"] == {"learning_rate": 0.008}
    for name in (
        "steps_interval",
        "time_per_step_s",
        "time_to_target_s",
        "device_hours",
        "money",
        "energy_kwh",
    ):
        assert set(first[name]) == INTERVAL
    assert (last["steps"], last["censored"], last["time_to_target_s"]) == (None, True, None)
    assert set(found["fit"]) == FIT
    assert found["fit"]["outcome"] == "ok"
    assert (found["fit"]["sharpness"], found["fit"]["extrapolated"]) == (1.0, [])
    assert set(found["recommendation"]) == RECOMMENDATION
    assert advice.recommendation is not None
    assert found["recommendation"]["batch_size"] == advice.recommendation.batch_size
    assert found["recommendation"]["objective"] == "time"
    assert found["recommendation"]["stability"] == advice.recommendation.stability
    assert found["currency"] == "EUR"
    assert set(found["answers"]) == ANSWERS
    assert set(found["spent"]) == SPENT


def test_what_consumption_does_and_when_a_change_pays() -> None:
    found = sent(json_output.recommend(evidence.advice(Prices(2.5, upfront_costs={128: 3.0, 999: 4.0}))))
    recommendation = found["recommendation"]
    assert (recommendation["rule_of_thumb"], recommendation["unmet"]) == (False, None)
    assert recommendation["pareto"] == [64]
    falls, rises = recommendation["consumption"]
    assert (falls["change"], falls["smaller"], falls["larger"]) == ("reduces", 8, 64)
    assert (rises["change"], rises["smaller"], rises["larger"]) == ("increases", 64, 256)
    assert set(falls["ratio"]) == INTERVAL and falls["ratio"]["high"] < 1
    never, unknown = recommendation["break_even"]
    assert (never["batch_size"], never["upfront"], never["against"]) == (128, 3.0, 64)
    assert never["saving"] < 0 and never["trainings"]["estimate"] is None
    assert unknown == {"batch_size": 999, "upfront": 4.0, "against": 64, "saving": None, "trainings": None}


def test_an_unmet_limit_is_told() -> None:
    found = sent(json_output.recommend(evidence.advice(limits=Wish(1e-3))))
    assert found["recommendation"]["unmet"] == found["recommendation"]["why"]


def test_a_rule_of_thumb_is_marked() -> None:
    found = sent(json_output.rule_of_thumb(evidence.thumb()))
    assert set(found) == {"configuration", "recommendation", "measure"}
    assert set(found["recommendation"]) == {"rule_of_thumb", "batch_size", "why", "caveats", "next"}
    assert found["recommendation"]["rule_of_thumb"] is True
    assert found["recommendation"]["batch_size"] == 1024
    assert set(found["measure"]) == MEASURE


def test_what_lies_outside_of_the_tried_range_is_named() -> None:
    advice = evidence.advice()
    outside = replace(advice.fit, extrapolated=("critical_batch_size",))
    found = sent(json_output.recommend(replace(advice, fit=outside)))
    assert found["fit"]["extrapolated"] == ["critical_batch_size"]


def test_what_is_not_known_is_null() -> None:
    found = sent(json_output.recommend(evidence.hopeless_advice()))
    assert found["recommendation"] is None
    assert found["answers"]["critical"] is None
    assert found["fit"]["outcome"] == "insufficient"
    assert found["fit"]["critical_batch_size"] is None


def test_numbers_that_are_not_finite_are_null() -> None:
    advice = evidence.advice()
    unbounded = replace(
        advice.fit, critical_batch_size=Interval(18.0, 0.0, math.inf), residual_log_rms=math.nan
    )
    found = sent(json_output.recommend(replace(advice, fit=unbounded)))
    assert found["fit"]["critical_batch_size"] == {"estimate": 18, "low": 0, "high": None, "level": 0.95}
    assert found["fit"]["residual_log_rms"] is None


def test_tune() -> None:
    found = sent(json_output.tune(evidence.tuning()))
    assert set(found) == TUNE
    assert set(found["best"]) == BEST
    assert found["study"] == "digits-mlp/0123abcd/tune/b64"
    assert found["trials"] == {"complete": 17, "infeasible": 3, "failed": 0}
    assert [set(check) for check in found["health"]] == [{"check", "outcome", "sentence"}] * 2
    assert found["seed_spread"] is None
    assert sent(json_output.tune(evidence.tuning(best=False)))["best"] is None


def test_measure_with_a_diagnosis_and_variants() -> None:
    found = sent(json_output.measure(evidence.hungry_throughput()))
    verdict, diagnosis, (faster, broken) = (found[key] for key in ("bottleneck", "diagnosis", "comparisons"))
    assert (verdict["kind"], set(verdict["share"])) == ("input", INTERVAL)
    assert verdict["share"]["estimate"] == pytest.approx(verdict["shares"]["input"]) == pytest.approx(2 / 3)
    assert diagnosis["stages"][0] == {"name": "map load (data.py:7)", "time_per_example_s": 9e-5}
    assert diagnosis["remedies"][0]["step_after_s"] == 2e-3
    assert faster["speedups"]["32"]["estimate"] == pytest.approx(2.0)
    assert broken == {
        "variant": "mixed_precision", "speedups": {}, "failures": ["Batch size 16: no bfloat16 here."],
    }  # fmt: skip
    row = found["measurements"][-1]
    assert row["near_memory_limit"] is True
    assert (row["compute_time_s"]["estimate"], row["input_time_s"]["estimate"]) == pytest.approx((2e-3, 6e-3))


def test_report_joins_the_three() -> None:
    found = sent(json_output.report(evidence.report()))
    assert set(found) == {"measure", "recommend", "studies", "notes", "next"}
    assert (set(found["measure"]), set(found["recommend"])) == (MEASURE, RECOMMEND)
    assert [set(study) for study in found["studies"]] == [TUNE]
    assert found["notes"] == ["The measurement is stale: the workload or the machine has changed since."]
    assert found["next"] == "advisor dashboard"
    empty = sent(json_output.report(evidence.empty_report()))
    nothing = {"measure": None, "recommend": None, "studies": [], "notes": []}
    assert empty == {**nothing, "next": "advisor measure"}


def test_studies_and_spending() -> None:
    (found,) = sent(json_output.studies([evidence.study()]))
    assert found["kind"] == "tune"
    assert found["settings"] == {"max_train_steps": 450}
    plan = sent(json_output.spending(evidence.spending()))
    assert (plan["batch_sizes"], plan["trials"], plan["money"]) == ([8, 16, 32], 98, 0.217)
    assert (plan["expected"]["trials"], plan["expected"]["money"]) == (20, 0.0217)
