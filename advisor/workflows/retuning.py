"""Which hyperparameters are retuned at each batch size, and where their search starts."""

import math
import statistics
from collections.abc import Mapping, Sequence

from advisor.analysis.compass import Axis, Compass, progress, start_learning_rate
from advisor.analysis.optimizers import PRIORS, prior, search_ranges
from advisor.analysis.quasi_random import usual_value
from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.scaling import BatchSizeResult
from advisor.records.search_space import Distribution, Float, Scale

STRIDES = ((2.0, 1.0, 0.5), (1.0, 0.5), (0.5,))
"""In doublings, with no, one, or more other batch sizes known.

Factors of 4 and 2 find the optimum, the square root of 2 brackets it.
"""


def compass_at(
    batch_size: int,
    names: Sequence[str],
    description: WorkloadDescription,
    results: Mapping[int, BatchSizeResult],
) -> Compass:
    """Return the search over ``names`` at ``batch_size``, begun from what other batch sizes gave."""
    ranges = search_ranges(description)
    axes = (_axis(name, ranges[name], _start(name, batch_size, description, results)) for name in names)
    known = [progress(one.best, one.steps) for one in results.values() if one.best and one.steps]
    usual_progress = statistics.median(known) if any(known) else None
    return Compass(tuple(axes), STRIDES[min(len(known), len(STRIDES) - 1)], usual_progress)


def _start(
    name: str, batch_size: int, description: WorkloadDescription, results: Mapping[int, BatchSizeResult]
) -> float:
    """Return where the search starts: the neighbour's optimum, the learning rate scaled."""
    optima = {size: float(result.best[name]) for size, result in results.items() if result.best}
    range_ = search_ranges(description)[name]
    usual = float(usual_value(range_, description.optimizer_hyperparameters.get(name)))
    if name == "learning_rate":
        exponent = prior(description.optimizer).learning_rate_exponent
        return start_learning_rate(optima, batch_size, exponent, usual)
    nearest = sorted(optima, key=lambda other: abs(math.log(other / batch_size)))
    return optima[nearest[0]] if nearest else usual


def _axis(name: str, range_: object, start: float) -> Axis:
    assert isinstance(range_, Float)
    return Axis(name, range_, min(max(start, range_.low), range_.high))


def tuned_names(description: WorkloadDescription, asked: Sequence[str]) -> Sequence[str]:
    """Return which hyperparameters are retuned at each batch size: the learning rate, then those asked for.

    A learning rate that a study file fixes is left alone. Raises WorkloadError for what cannot be retuned.
    """
    ranges = search_ranges(description)
    usable = [name for name, range_ in ranges.items() if _is_on_log_axis(range_)]
    if "learning_rate" not in ranges and description.optimizer not in PRIORS:
        raise WorkloadError(
            f"The optimizer of {description.name} does not take a constant learning rate from "
            "hp.learning_rate, so that it cannot be retuned at each batch size; a schedule would also tie "
            "the steps to the planned length. Use hp.learning_rate as it is, or name an optimizer such as "
            "'nesterov'."
        )
    for name in asked:
        if name in ranges and name not in usable:
            raise WorkloadError(
                f'{name!r} can only be retuned at each batch size on a log scale: give it scale = "log" '
                "(log=True), or tune it afterwards with `advisor tune`."
            )
        if name not in ranges and name != "learning_rate":
            raise WorkloadError(
                f"{name!r} cannot be retuned at each batch size with optimizer {description.optimizer!r}; "
                f"choose among {', '.join(usable)}."
            )
    wanted = dict.fromkeys(("learning_rate", *asked))
    return [name for name in wanted if name in usable]


def _is_on_log_axis(range_: Distribution) -> bool:
    return isinstance(range_, Float) and range_.scale is not Scale.LINEAR
