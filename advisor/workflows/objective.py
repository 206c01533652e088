"""Which validation metric is looked at where there may be no target, and which batch sizes there are."""

import math
import sys
from collections.abc import Sequence

from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import MeasurementOutcome, Throughput
from advisor.records.requests import RecommendRequest
from advisor.records.target import Target
from advisor.workflows.measure import asked_batch_sizes

DIRECTIONS = ("at_least", "at_most")
_KNOWN = {"accuracy": "at_least", "loss": "at_most"}


def objective(description: WorkloadDescription, metric: str | None, usual: Sequence[str]) -> Target:
    """Return a bound on the metric to look at that the untrained model just meets: where better begins.

    ``metric`` is its name, with ``:at_least`` or ``:at_most`` behind it where the direction is not known from
    the target and it is neither accuracy nor loss. Without one it is the first of ``usual`` that the model
    reports. Raises WorkloadError for a metric that it does not report, or without a direction.
    """
    name, _, direction = (metric or _first(description, usual)).partition(":")
    if name not in description.metrics:
        raise WorkloadError(
            f"Got the metric {name!r}; {description.name} reports {', '.join(description.metrics)}."
        )
    direction = direction or _direction(description, name)
    if direction not in DIRECTIONS:
        raise WorkloadError(
            f"Whether larger or smaller values of {name!r} are better is never guessed: write "
            f"--metric {name}:at_least or --metric {name}:at_most."
        )
    value = description.initial_metrics[name]
    if not math.isfinite(value):
        value = -sys.float_info.max if direction == "at_least" else sys.float_info.max
    return Target(name, **{direction: value})


def batch_sizes(
    throughput: Throughput, request: RecommendRequest, description: WorkloadDescription
) -> Sequence[int]:
    """Return the batch sizes that were asked for and ran, none above saturation unless listed, ascending."""
    listed, saturation = request.batch_sizes.listed, throughput.saturation_batch_size
    asked = asked_batch_sizes(request.batch_sizes, description.training_examples)
    ran = [row.batch_size for row in throughput.table if row.time_per_step_s and row.batch_size in asked]
    if saturation is not None and not listed:
        ran = [batch_size for batch_size in ran if batch_size <= max(saturation, ran[0])]
    if not ran:
        fits = (MeasurementOutcome.OK, MeasurementOutcome.DATASET_LIMITED)
        why = next((row.detail.splitlines()[0] for row in throughput.table if row.outcome not in fits), "")
        raise WorkloadError(f"None of the batch sizes asked for could be trained. {why}".strip())
    return ran


def _first(description: WorkloadDescription, usual: Sequence[str]) -> str:
    return next(name for name in usual if name in description.metrics)


def _direction(description: WorkloadDescription, name: str) -> str:
    target = description.target
    if target is not None and target.metric == name:
        return "at_least" if target.maximize else "at_most"
    return _KNOWN.get(name, "")
