"""What a workload is, as its session describes it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from advisor.records.search_space import SearchSpace
from advisor.records.target import Target


@dataclass(frozen=True)
class Configuration:
    """What a result was obtained on; results of different configurations are never pooled.

    ``steps_per_call`` is None where one call of the compiled program takes all steps until the next look.
    """

    workers: int = 1
    devices: int = 1
    device_kind: str = "cpu"
    precision: str = "float32"
    xla: bool = False
    steps_per_call: int | None = None


TIMING_PARTS = ("model", "optimizer", "loss", "data_shape", "pipeline", "configuration", "versions")
"""Parts of a fingerprint that a time per step depends on."""


@dataclass(frozen=True)
class Fingerprint:
    """Digests of everything that a measurement or a curve depends on, part by part.

    ``training`` identifies what steps to target depend on and names the studies; ``timing`` identifies
    what a time per step depends on. So a changed target leaves a measurement valid, and a new machine
    leaves a steps-to-target curve valid. ``pipeline`` is the code that makes examples while training runs,
    empty where arrays are made beforehand.
    """

    model: str
    optimizer: str
    loss: str
    data_shape: str
    data_content: str
    target: str
    configuration: str
    versions: str
    pipeline: str = ""

    @property
    def training(self) -> str:
        """Hexadecimal digest of what steps to target depend on."""
        return _digest(self.model, self.optimizer, self.loss, self.data_shape, self.data_content, self.target)

    @property
    def timing(self) -> str:
        """Hexadecimal digest of what a time per step depends on."""
        return _digest(*(getattr(self, name) for name in TIMING_PARTS))

    def changed(self, other: "Fingerprint") -> tuple[str, ...]:
        """Return the names of the parts in which ``other`` differs."""
        names = (part.name for part in fields(self))
        return tuple(name for name in names if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True)
class WorkloadDescription:
    """A workload as built: names, sizes, search space, identity.

    ``examples`` maps a split to its number of examples. ``optimizer_hyperparameters`` maps each
    hyperparameter of the optimizer that is held as a value, and not fixed by a study file, to its default.
    ``search_space`` leaves out what is fixed as well. ``metrics`` are the names that
    an evaluation reports, ``initial_metrics`` their values on the validation split before any training.
    """

    name: str
    fingerprint: Fingerprint
    target: Target | None
    optimizer: str
    optimizer_hyperparameters: Mapping[str, float]
    search_space: SearchSpace
    examples: Mapping[str, int]
    metrics: tuple[str, ...]
    initial_metrics: Mapping[str, float]
    parameter_count: int
    configuration: Configuration
    environment: Mapping[str, str]

    @property
    def training_examples(self) -> int:
        """Number of examples in the training split."""
        return self.examples["train"]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
