"""A question as a file asks it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes
from advisor.records.search_space import HyperparameterValue, Role, SearchSpace
from advisor.records.target import Target


@dataclass(frozen=True)
class StudyFile:
    """What a study file says, checked; None or empty where it leaves the choice to the advisor.

    ``workload`` is ``/absolute/file.py[:name]`` or ``package.module:name``. Every hyperparameter that the
    file names has a role, and stands in ``search_space`` if it is searched, else in ``fixed``.
    ``max_train_steps`` and ``trials`` belong to a tuning study, the other limits to a recommendation.
    """

    workload: str
    target: Target | None = None
    batch_sizes: BatchSizes | None = None
    search_space: SearchSpace = field(default_factory=dict)
    fixed: Mapping[str, HyperparameterValue] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    trials_per_batch_size: int | None = None
    max_examples_per_trial: int | None = None
    seeds: int | None = None
    trials: int | None = None
    max_train_steps: int | None = None
    prices: Prices | None = None
