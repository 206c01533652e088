"""What the runs of one curve that another program measured say, batch size by batch size."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from advisor.analysis.fresh_seeds import steps_interval
from advisor.analysis.statistics import interval_around, student_quantile
from advisor.analysis.throughput import saturation_batch_size
from advisor.analysis.time_model import fit_time_model
from advisor.records.description import Configuration
from advisor.records.imported import ImportedRun
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, MeasurementOutcome, Throughput
from advisor.records.scaling import BatchSizeResult, Observation

Runs = Sequence[ImportedRun]


def by_batch_size(runs: Iterable[ImportedRun]) -> Mapping[int, Runs]:
    """Return the runs of each batch size, ascending."""
    found: dict[int, list[ImportedRun]] = {}
    for run in sorted(runs, key=lambda run: run.batch_size):
        found.setdefault(run.batch_size, []).append(run)
    return found


def by_learning_rate(runs: Runs) -> Mapping[float | None, Runs]:
    """Return the runs of each learning rate."""
    rates = dict.fromkeys(run.learning_rate for run in runs)
    return {rate: [run for run in runs if run.learning_rate == rate] for rate in rates}


def result_at(batch_size: int, runs: Runs) -> BatchSizeResult:
    """Return what the runs at one batch size found at their best learning rate.

    The best has the least geometric mean of steps over its runs, those that did not reach the target
    counted with the steps that they had, among the learning rates at which at least half reached it. The
    other runs served to choose it and count no further.
    """
    rates = by_learning_rate(runs)
    best = min(rates, key=lambda rate: _rank(rates[rate]))
    crossings = [run.crossing for run in rates[best]]
    interval = steps_interval(crossings, log_slack=0.0)
    return BatchSizeResult(
        batch_size=batch_size,
        best=None if best is None else {"learning_rate": best},
        at_edge=interval is not None and _at_edge(best, [rate for rate in rates if rate is not None]),
        trials=len(runs),
        infeasible=0,
        observations=tuple(Observation(batch_size, crossing) for crossing in crossings),
        steps=interval.estimate if interval else None,
        steps_interval=interval,
        censored=interval is None,
        log_slack=0.0,
    )


def throughput_of(task: str, runs: Runs) -> Throughput:
    """Return the times per step that the runs tell; one alone at a batch size is taken as exact."""
    timed = by_batch_size(run for run in runs if run.time_per_step_s is not None)
    table = tuple(_timed(size, [run.time_per_step_s or math.nan for run in of]) for size, of in timed.items())
    return Throughput(
        workload=task,
        fingerprint="",
        configuration=Configuration(),
        environment={},
        measured_at="",
        table=table,
        largest_feasible_batch_size=max(timed, default=None),
        saturation_batch_size=saturation_batch_size(table),
        time_model=fit_time_model(table),
    )


def _rank(runs: Runs) -> tuple[bool, float]:
    """Return what puts the runs of the best learning rate first."""
    failed = sum(run.crossing.censored for run in runs)
    steps = [run.crossing.low if run.crossing.steps is None else run.crossing.steps for run in runs]
    return 2 * failed > len(runs), sum(map(math.log, steps)) / len(steps)


def _at_edge(best: float | None, rates: Sequence[float]) -> bool:
    return len(rates) > 1 and best in (min(rates), max(rates))


def _timed(batch_size: int, times_s: Sequence[float]) -> BatchThroughput:
    time_s = _mean(times_s)
    return BatchThroughput(
        batch_size=batch_size,
        outcome=MeasurementOutcome.OK,
        detail="",
        time_per_step_s=time_s,
        throughput_examples_per_s=time_s.inverse(batch_size),
        compile_s=None,
        peak_memory_bytes=None,
        steps_timed=0,
        doubling_efficiency=None,
    )


def _mean(values: Sequence[float]) -> Interval:
    """Return the mean with a t interval; of one value, an interval without width."""
    mean = float(np.mean(values))
    if len(values) == 1:
        return Interval(mean, mean, mean)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return interval_around(mean, student_quantile(0.95, len(values) - 1) * error / mean)
