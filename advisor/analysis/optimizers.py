"""What is known of each optimizer beforehand: how far to look, how it scales."""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.records.description import WorkloadDescription
from advisor.records.search_space import Float, SearchSpace


@dataclass(frozen=True)
class OptimizerPrior:
    """Search ranges, and the power of the batch size that the learning rate follows.

    The optimum of SGD grows in proportion to the batch size in the perfect-scaling regime, that of the
    adaptive methods with its square root (Malladi et al. 2022, arXiv 2205.10287).
    """

    learning_rate_exponent: float
    space: Mapping[str, Float]


_WEIGHT_DECAY = Float(1e-6, 1e-1, log=True)
_MOMENTUM = Float(0.5, 0.999, log_one_minus=True)
_SGD = {"learning_rate": Float(1e-4, 10.0, log=True), "weight_decay": _WEIGHT_DECAY}
_ADAPTIVE = {"learning_rate": Float(1e-5, 1.0, log=True), "weight_decay": _WEIGHT_DECAY}
_WITH_BETA = {**_ADAPTIVE, "beta_1": _MOMENTUM}

PRIORS: Mapping[str, OptimizerPrior] = {
    "sgd": OptimizerPrior(1.0, {**_SGD, "momentum": Float(0.0, 0.999, log_one_minus=True)}),
    "nesterov": OptimizerPrior(1.0, {**_SGD, "momentum": _MOMENTUM}),
    "adam": OptimizerPrior(0.5, _WITH_BETA),
    "nadam": OptimizerPrior(0.5, _WITH_BETA),
    "adamw": OptimizerPrior(0.5, {**_WITH_BETA, "weight_decay": Float(1e-6, 1.0, log=True)}),
}

_UNKNOWN = OptimizerPrior(1.0, {"learning_rate": Float(1e-5, 10.0, log=True)})


def prior(optimizer: str) -> OptimizerPrior:
    """Return what is known of ``optimizer``; for one that is the user's own, the learning rate alone."""
    return PRIORS.get(optimizer, _UNKNOWN)


def search_ranges(description: WorkloadDescription) -> SearchSpace:
    """Return every hyperparameter that can be searched, with its range: the optimizer's, then the workload's.

    A range of the workload or the study file takes the place of the usual one; hyperparameters that the
    model reads itself, or that are fixed, are not searched for the optimizer.
    """
    held = description.optimizer_hyperparameters
    usual = {name: range_ for name, range_ in prior(description.optimizer).space.items() if name in held}
    return {**usual, **description.search_space}
