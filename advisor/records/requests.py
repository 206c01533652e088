"""What a command asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.records.recommendation import Objective, Prices
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.target import Target


@dataclass(frozen=True)
class SessionOptions:
    """How a training runs: what it computes stays the same but for rounding and, under XLA, random draws.

    ``steps_per_call`` None takes as many steps in one call of the compiled program as are asked for.
    """

    xla: bool = False
    mixed_precision: bool = False
    steps_per_call: int | None = None


@dataclass(frozen=True)
class WorkloadReference:
    """Where a workload is found: ``file.py[:name]``, ``package.module:name``, or pickled by value.

    ``target`` and ``search_space`` come from a study file and replace the workload's own where given;
    ``fixed`` are hyperparameters that keep one value throughout.
    """

    source: str
    pickled: bytes | None = None
    target: Target | None = None
    search_space: SearchSpace = field(default_factory=dict)
    fixed: Mapping[str, HyperparameterValue] = field(default_factory=dict)
    options: SessionOptions = field(default_factory=SessionOptions)


@dataclass(frozen=True)
class BatchSizes:
    """Which batch sizes to look at: ``listed`` ones, else powers of two from ``minimum`` to ``maximum``."""

    minimum: int = 1
    maximum: int | None = None
    listed: tuple[int, ...] = ()


@dataclass(frozen=True)
class MeasureRequest:
    """Time ``seconds`` at each batch size, or less where that is enough.

    It is timed in two visits, or in one where steps are so long that it takes three times the seconds, or in
    more until they agree: until the relative half-width of the interval, without what a machine drifts in
    hours, is at most ``precision``. ``refine`` looks between the last power of two that fits the memory and
    the first that does not. ``probe_longest`` tries each batch size on the largest example first. ``again``
    measures anew what is recorded. ``input_workers`` tries a pipeline of so many producers. ``profile`` is
    the folder for a trace of a few steps.
    """

    batch_sizes: BatchSizes = field(default_factory=BatchSizes)
    seconds: float = 0.6
    precision: float = 0.02
    refine: bool = False
    probe_longest: bool = False
    again: bool = False
    input_workers: int = 0
    profile: Path | None = None


@dataclass(frozen=True)
class Provenance:
    """What reproduces a study: the command, the git commit it ran from, and what was not committed."""

    command: str = ""
    revision: str | None = None
    uncommitted_diff: str | None = None


@dataclass(frozen=True)
class RecommendRequest:
    """Find steps to target at each batch size, with the hyperparameters in ``tune`` retuned at each.

    At most ``trials_per_batch_size`` trials select, then ``seeds`` fresh seeds measure (None: as
    many as the question needs). A trial trains on
    at most ``max_examples_per_trial`` examples (None: a multiple of the training split). All of them together
    use at most ``spend_examples`` examples and ``spend_time_s`` seconds, what is recorded already included.
    ``objective`` None is cost under a deadline alone, else time. One training to the target with the
    recommended batch size is to take at most ``deadline_s`` seconds and ``max_cost`` of money.
    """

    batch_sizes: BatchSizes = field(default_factory=BatchSizes)
    objective: Objective | None = None
    deadline_s: float | None = None
    max_cost: float | None = None
    tune: tuple[str, ...] = ("learning_rate",)
    trials_per_batch_size: int = 12
    seeds: int | None = None
    max_examples_per_trial: int | None = None
    spend_examples: int | None = None
    spend_time_s: float | None = None
    overhead: float = 0.2
    prices: Prices = field(default_factory=Prices)
    seed: int = 0
    measure: MeasureRequest = field(default_factory=MeasureRequest)
    workload_argument: str = ""
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True)
class TuneRequest:
    """Run the study at ``batch_size`` until ``trials`` trials have ended.

    ``max_train_steps`` None takes the recorded study's, else a multiple of the known steps to target,
    else a number of epochs.
    """

    batch_size: int
    trials: int = 20
    max_train_steps: int | None = None
    seed: int = 0
    workload_argument: str = ""
    provenance: Provenance = field(default_factory=Provenance)
