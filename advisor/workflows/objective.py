"""Which validation metric is looked at where there may be no target."""

import math
import sys
from collections.abc import Sequence

from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.target import Target

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


def _first(description: WorkloadDescription, usual: Sequence[str]) -> str:
    return next(name for name in usual if name in description.metrics)


def _direction(description: WorkloadDescription, name: str) -> str:
    target = description.target
    if target is not None and target.metric == name:
        return "at_least" if target.maximize else "at_most"
    return _KNOWN.get(name, "")
