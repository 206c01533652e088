"""Answers as plain data for JSON: times in seconds, what is not known is None."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

from advisor.records.measurement import BatchThroughput, Throughput
from advisor.records.recommendation import Advice, ResourceCost, RuleOfThumb, SpendingPlan
from advisor.records.report import Report
from advisor.records.scaling import BatchSizeResult, ScalingFit
from advisor.records.target import Target
from advisor.records.trials import Study
from advisor.records.tuning import TuningResult

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """Return ``value`` as what :func:`json.dumps` takes; numbers that are not finite become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return value


def measure(throughput: Throughput) -> Json:
    """Return a measured sweep."""
    return plain(  # type: ignore[no-any-return]
        {
            "workload": throughput.workload,
            "fingerprint": throughput.fingerprint,
            "configuration": throughput.configuration,
            "environment": throughput.environment,
            "devices": throughput.configuration.devices,
            "measurements": [_measurement(row) for row in throughput.table],
            "largest_feasible_batch_size": throughput.largest_feasible_batch_size,
            "saturation_batch_size": throughput.saturation_batch_size,
            "bottleneck": throughput.bottleneck,
            "diagnosis": throughput.diagnosis,
            "time_model": throughput.time_model,
            "comparisons": throughput.comparisons,
            "notes": throughput.notes,
        }
    )


def recommend(advice: Advice) -> Json:
    """Return the advice with what it rests on."""
    costs = {cost.batch_size: cost for cost in advice.costs}
    return plain(  # type: ignore[no-any-return]
        {
            "configuration": advice.description.configuration,
            "target": _target(advice.description.target),
            "currency": advice.prices.currency,
            "steps_to_target": [_steps(result, costs.get(result.batch_size)) for result in advice.results],
            "fit": _fit(advice.fit),
            "recommendation": _recommendation(advice),
            "answers": advice.answers,
            "noise_scale": advice.noise_scale,
            "further": advice.further or None,
            "spent": advice.spent,
        }
    )


def rule_of_thumb(found: RuleOfThumb) -> Json:
    """Return a rule of thumb, marked as one, with the measurement that it rests on."""
    measured = found.throughput
    return plain(  # type: ignore[no-any-return]
        {
            "configuration": measured.configuration,
            "recommendation": {
                "rule_of_thumb": True,
                "batch_size": found.batch_size,
                "why": found.why,
                "caveats": found.caveats,
                "next": found.next,
            },
            "measure": measure(measured),
        }
    )


def tune(result: TuningResult) -> Json:
    """Return what a study found."""
    return plain(  # type: ignore[no-any-return]
        {
            "study": result.study.name,
            "configuration": result.study.configuration,
            "batch_size": result.study.batch_size,
            "trials": result.trials,
            "best": result.best,
            "health": result.health,
            "seed_spread": None,
            "spent": result.spent,
        }
    )


def report(known: Report) -> Json:
    """Return everything known about a workload; None for a command that has not been run yet."""
    return {
        "measure": measure(known.throughput) if known.throughput else None,
        "recommend": recommend(known.advice) if known.advice else None,
        "studies": [tune(result) for result in known.studies],
        "notes": list(known.notes),
        "next": known.next,
    }


def studies(known: Sequence[Study]) -> list[Json]:
    """Return the recorded studies."""
    return [plain(study) for study in known]


def spending(plan: SpendingPlan) -> Json:
    """Return what a search may use."""
    return plain(plan)  # type: ignore[no-any-return]


def _measurement(row: BatchThroughput) -> Json:
    return {
        "batch_size": row.batch_size,
        "outcome": row.outcome,
        "detail": row.detail,
        "time_per_step_s": row.time_per_step_s,
        "throughput_examples_per_s": row.throughput_examples_per_s,
        "compute_time_s": row.compute_time_s,
        "input_time_s": row.input_time_s,
        "compile_s": row.compile_s,
        "peak_memory_bytes": row.peak_memory_bytes,
        "near_memory_limit": row.near_memory_limit,
        "steps_timed": row.steps_timed,
        "doubling_efficiency": row.doubling_efficiency,
        "doubling_gain": row.doubling_gain,
    }


def _target(target: Target | None) -> Json | None:
    if target is None:
        return None
    return {"metric": target.metric, "at_least": target.at_least, "at_most": target.at_most}


def _steps(result: BatchSizeResult, cost: ResourceCost | None) -> Json:
    return {
        "batch_size": result.batch_size,
        "steps": result.steps,
        "steps_interval": result.steps_interval,
        "censored": result.censored,
        "trials": result.trials,
        "infeasible": result.infeasible,
        "best": result.best,
        "at_edge": result.at_edge,
        "time_per_step_s": cost and cost.time_per_step_s,
        "time_to_target_s": cost and cost.time_to_target_s,
        "device_hours": cost and cost.device_hours,
        "money": cost and cost.money,
        "energy_kwh": cost and cost.energy_kwh,
    }


def _fit(fit: ScalingFit) -> Json:
    return {
        "outcome": fit.outcome.name.lower(),
        "min_steps": fit.min_steps,
        "min_examples": fit.min_examples,
        "critical_batch_size": fit.critical_batch_size,
        "overhead": fit.overhead,
        "half_efficiency_batch_size": fit.half_efficiency_batch_size,
        "maximum_useful_batch_size": fit.maximum_useful_batch_size,
        "extrapolated": fit.extrapolated,
        "sharpness": fit.sharpness,
        "residual_log_rms": fit.residual_log_rms,
    }


def _recommendation(advice: Advice) -> Json | None:
    found = advice.recommendation
    if found is None:
        return None
    return {
        "rule_of_thumb": False,
        "objective": found.objective,
        "batch_size": found.batch_size,
        "time_to_target_s": found.time_to_target_s,
        "device_hours": found.device_hours,
        "money": found.money,
        "stability": found.stability,
        "why": found.why,
        "caveats": found.caveats,
        "unmet": found.unmet or None,
        "pareto": found.pareto,
        "consumption": found.consumption,
        "break_even": found.break_even,
        "next": found.next,
    }
