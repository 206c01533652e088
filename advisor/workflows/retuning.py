"""Which hyperparameters are retuned at each batch size, and where their search starts."""

import math
from collections.abc import Mapping, Sequence

from advisor.analysis.compass import Axis, Compass, start_learning_rate
from advisor.analysis.optimizers import PRIORS, prior, search_ranges
from advisor.analysis.quasi_random import usual_value
from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.search_space import Distribution, Float, HyperparameterValue, Scale

Optima = Mapping[int, Mapping[str, HyperparameterValue]]
"""The best hyperparameters found at each batch size."""

STRIDES = ((2.0, 1.0, 0.5), (1.0, 0.5), (0.5,))
"""In doublings, with no, one, or more other batch sizes known.

Factors of 4 and 2 find the optimum, the square root of 2 brackets it.
"""


def compass_at(
    batch_size: int,
    names: Sequence[str],
    description: WorkloadDescription,
    optima: Optima,
    usual_progress: float | None = None,
) -> Compass:
    """Return the search over ``names`` at ``batch_size``, begun from the ``optima`` of other batch sizes.

    ``usual_progress`` is that of :class:`~advisor.analysis.compass.Compass`.
    """
    ranges = search_ranges(description)
    axes = (_axis(name, ranges[name], _start(name, batch_size, description, optima)) for name in names)
    return Compass(tuple(axes), STRIDES[min(len(optima), len(STRIDES) - 1)], usual_progress)


def _start(name: str, batch_size: int, description: WorkloadDescription, optima: Optima) -> float:
    """Return where the search starts: the neighbour's optimum, the learning rate scaled."""
    known = {size: float(best[name]) for size, best in optima.items()}
    range_ = search_ranges(description)[name]
    usual = float(usual_value(range_, description.optimizer_hyperparameters.get(name)))
    if name == "learning_rate":
        exponent = prior(description.optimizer).learning_rate_exponent
        return start_learning_rate(known, batch_size, exponent, usual)
    nearest = sorted(known, key=lambda other: abs(math.log(other / batch_size)))
    return known[nearest[0]] if nearest else usual


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
