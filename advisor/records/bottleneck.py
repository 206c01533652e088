"""What a training step waits for, and what would help."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from advisor.records.intervals import Interval


class BottleneckKind(StrEnum):
    """What holds training throughput back at one batch size."""

    COMPUTE = "compute"
    INPUT = "input"
    HOST = "host"
    SYNCHRONIZATION = "synchronization"
    DISPATCH = "dispatch"
    MEMORY = "memory"
    DATA = "data"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PipelineStage:
    """One stage of an input pipeline: a transformation and the user's function in it, if any.

    ``time_per_example_s`` is what the pipeline up to here takes beyond the pipeline before it (s for each
    training example, at least 0).
    """

    name: str
    time_per_example_s: float


@dataclass(frozen=True)
class Remedy:
    """A change of the input pipeline that was tried.

    Times are seconds per training step: of the pipeline alone and of the whole step, before and with it.
    ``how`` is what to write in the workload, a sentence; ``caveat`` what to mind, or nothing.
    ``speedup_low`` is a lower bound of the speedup, with 95 % confidence; None where that is not known.
    """

    name: str
    how: str
    input_before_s: float
    input_after_s: float
    step_before_s: float
    step_after_s: float
    caveat: str = ""
    speedup_low: float | None = None

    @property
    def speedup(self) -> float:
        """Time per step before over that with the remedy."""
        return self.step_before_s / self.step_after_s


@dataclass(frozen=True)
class InputDiagnosis:
    """What an input pipeline does at one batch size, in the order of its stages.

    ``unused_features`` are the parts of an example that neither model nor loss reads, with the share of an
    example's bytes that they take. ``input_workers`` is how many producers were tried; ``notes`` are
    sentences about what could not be looked at.
    """

    batch_size: int
    stages: tuple[PipelineStage, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    unused_features: tuple[str, ...] = ()
    unused_share: float = 0.0
    input_workers: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bottleneck:
    """A verdict at ``batch_size``.

    ``share`` is the part of a step that ``kind`` takes, ``shares`` that of everything that was measured;
    they need not sum to 1, since parts overlap. What is not known is None or missing. ``verdict``, ``why``
    and ``next`` are sentences.
    """

    kind: BottleneckKind
    batch_size: int | None
    share: Interval | None
    verdict: str
    why: str
    next: tuple[str, ...]
    shares: Mapping[BottleneckKind, float] = field(default_factory=dict)
