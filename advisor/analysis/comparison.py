"""How much faster a training is with one option changed."""

from advisor.analysis.statistics import product
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchThroughput, Comparison, MeasurementOutcome, Throughput

_NO_FAULT = (MeasurementOutcome.OK, MeasurementOutcome.DATASET_LIMITED)


def compare(variant: str, without: Throughput, with_it: Throughput) -> Comparison:
    """Return time per step without the option over that with it, at every batch size that ran with both."""
    ran = {row.batch_size: row.time_per_step_s for row in with_it.table if row.time_per_step_s}
    speedups: dict[int, Interval] = {}
    for row in without.table:
        if row.time_per_step_s is not None and row.batch_size in ran:
            speedups[row.batch_size] = product(row.time_per_step_s, ran[row.batch_size].inverse())
    failures = (_failure(row) for row in with_it.table if row.outcome not in _NO_FAULT)
    return Comparison(variant, speedups, tuple(failures))


def _failure(row: BatchThroughput) -> str:
    return f"Batch size {row.batch_size:,}: {row.detail.splitlines()[0]}"
