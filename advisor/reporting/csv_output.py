"""Answers as tables for a spreadsheet: one line per batch size or study, empty where not known."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO

from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, Throughput
from advisor.records.recommendation import Advice, ResourceCost, RuleOfThumb, SpendingPlan
from advisor.records.report import Report
from advisor.records.scaling import BatchSizeResult
from advisor.records.trials import Study, TrialState
from advisor.records.tuning import TuningResult

Row = Mapping[str, object]


def measure(throughput: Throughput) -> str:
    """Return one line per measured batch size."""
    return written(_measured(row) for row in throughput.table)


def recommend(advice: Advice) -> str:
    """Return one line per tried batch size: steps to target and what they cost."""
    costs = {cost.batch_size: cost for cost in advice.costs}
    return written(_tried(result, costs.get(result.batch_size), advice) for result in advice.results)


def rule_of_thumb(found: RuleOfThumb) -> str:
    """Return one line: the batch size that the measurement alone suggests, and its throughput."""
    (row,) = (row for row in found.throughput.table if row.batch_size == found.batch_size)
    return written([{"rule_of_thumb": True, **_measured(row)}])


def tune(result: TuningResult) -> str:
    """Return one line: the best trial of a study and how its trials ended."""
    return written([_tuned(result)])


def report(known: Report) -> str:
    """Return the most telling table that there is: steps and costs, else throughput, else studies."""
    if known.advice is not None:
        return recommend(known.advice)
    return measure(known.throughput) if known.throughput else written(map(_tuned, known.studies))


def studies(known: Sequence[Study]) -> str:
    """Return one line per recorded study."""
    return written(_study(study) for study in known)


def spending(plan: SpendingPlan) -> str:
    """Return one line: what a search may use, and what is expected."""
    sizes = " ".join(str(size) for size in plan.batch_sizes)
    columns = asdict(plan)
    expected = columns.pop("expected") or {}
    more = {f"expected_{name}": given for name, given in expected.items()}
    return written([{**columns, "batch_sizes": sizes, **more}])


def _measured(row: BatchThroughput) -> Row:
    return {
        "batch_size": row.batch_size,
        "outcome": row.outcome.value,
        **interval_columns("time_per_step_s", row.time_per_step_s),
        **interval_columns("throughput_examples_per_s", row.throughput_examples_per_s),
        "doubling_efficiency": row.doubling_efficiency,
        "doubling_gain": row.doubling_gain,
        **interval_columns("compute_time_s", row.compute_time_s),
        **interval_columns("input_time_s", row.input_time_s),
        "compile_s": row.compile_s,
        "peak_memory_bytes": row.peak_memory_bytes,
        "near_memory_limit": row.near_memory_limit,
        "steps_timed": row.steps_timed,
        "detail": row.detail,
    }


def _tried(result: BatchSizeResult, cost: ResourceCost | None, advice: Advice) -> Row:
    names = {name: None for other in advice.results for name in other.best or {}}
    return {
        "batch_size": result.batch_size,
        **interval_columns("steps", result.steps_interval, result.steps),
        "censored": result.censored,
        "trials": result.trials,
        "infeasible": result.infeasible,
        "at_edge": result.at_edge,
        **interval_columns("time_per_step_s", cost.time_per_step_s if cost else None),
        **interval_columns("time_to_target_s", cost.time_to_target_s if cost else None),
        **interval_columns("device_hours", cost.device_hours if cost else None),
        **interval_columns("money", cost.money if cost else None),
        **interval_columns("energy_kwh", cost.energy_kwh if cost else None),
        **{**names, **(result.best or {})},
    }


def _tuned(result: TuningResult) -> Row:
    study, best = result.study, result.best
    return {
        "study": study.name,
        "batch_size": study.batch_size,
        **{state.value: result.trials.get(state.value, 0) for state in TrialState},
        "best_trial": best and best.number,
        "metric": study.target.metric,
        "best_value": best and best.value,
        "best_step": best and best.step,
        "checkpoint": best and best.checkpoint,
        **(best.hyperparameters if best else {}),
    }


def _study(study: Study) -> Row:
    return {
        "study": study.name,
        "kind": study.kind.value,
        "workload": study.workload,
        "fingerprint": study.fingerprint,
        "batch_size": study.batch_size,
        "target": str(study.target),
        "begun": study.created_at,
        "revision": study.revision,
        "uncommitted": study.uncommitted_diff is not None,
        "command": study.command,
        "note": study.note,
    }


def interval_columns(name: str, interval: Interval | None, estimate: float | None = None) -> Row:
    """Return an estimate under ``name``, and its bounds under that with ``_low`` and ``_high``."""
    if interval is None:
        return {name: estimate, f"{name}_low": None, f"{name}_high": None}
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def written(rows: Iterable[Row]) -> str:
    """Return lines under the union of their columns, in the order in which these first appear."""
    lines = list(rows)
    columns = list(dict.fromkeys(name for line in lines for name in line))
    stream = StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)
    return stream.getvalue()


def _cell(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
