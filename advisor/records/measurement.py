"""Time per step at each batch size."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from advisor.records.bottleneck import Bottleneck, InputDiagnosis
from advisor.records.description import Configuration, Fingerprint
from advisor.records.intervals import Interval
from advisor.records.session import BlockTiming, MemoryUse


class MeasurementOutcome(StrEnum):
    """How the measurement of one batch size ended."""

    OK = "ok"
    OUT_OF_MEMORY = "out_of_memory"
    DATASET_LIMITED = "dataset_limited"
    FAILED = "failed"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class BatchMeasurement:
    """Raw blocks at one batch size; ``warm_up_blocks`` came first and are left out of every summary.

    ``later_visits`` are timings of the same steps some time afterwards, each with its warm-up. ``memory`` is
    that of the first visit, on the largest example where ``probed_longest``. ``compute_blocks`` and
    ``input_blocks`` are of those parts of a step alone, ``together_blocks`` of whole steps right before
    them, ``worker_blocks`` of each worker's computation without the others. ``competing_cpus`` is how many
    processors other programs kept busy meanwhile, ``gpu_processes`` are those on the GPU.
    """

    batch_size: int
    outcome: MeasurementOutcome
    detail: str = ""
    warm_up_blocks: tuple[BlockTiming, ...] = ()
    blocks: tuple[BlockTiming, ...] = ()
    compile_s: float | None = None
    memory: MemoryUse = field(default_factory=MemoryUse)
    compute_blocks: tuple[BlockTiming, ...] = ()
    input_blocks: tuple[BlockTiming, ...] = ()
    worker_blocks: tuple[tuple[BlockTiming, ...], ...] = ()
    competing_cpus: float | None = None
    gpu_processes: tuple[str, ...] = ()
    diagnosis: InputDiagnosis | None = None
    later_visits: tuple[tuple[BlockTiming, ...], ...] = ()
    together_blocks: tuple[BlockTiming, ...] = ()
    probed_longest: bool = False

    @property
    def visits(self) -> tuple[tuple[BlockTiming, ...], ...]:
        """All blocks of whole steps, visit by visit."""
        first = (*self.warm_up_blocks, *self.blocks)
        return (first, *self.later_visits) if first else self.later_visits


@dataclass(frozen=True)
class MeasurementRun:
    """A measured sweep over batch sizes, of one workload in one configuration."""

    workload: str
    fingerprint: Fingerprint
    configuration: Configuration
    environment: Mapping[str, str]
    measurements: tuple[BatchMeasurement, ...]
    measured_at: str


@dataclass(frozen=True)
class BatchThroughput:
    """Summary of one measured batch size; unknown figures are None.

    ``time_per_step_s`` estimates the mean, since totals are predicted from it. ``doubling_efficiency`` is
    throughput at this batch size over throughput at half of it, divided by 2. ``near_memory_limit`` says
    that it ran with less than a margin to spare.
    """

    batch_size: int
    outcome: MeasurementOutcome
    detail: str
    time_per_step_s: Interval | None
    throughput_examples_per_s: Interval | None
    compile_s: float | None
    peak_memory_bytes: int | None
    steps_timed: int
    doubling_efficiency: float | None
    compute_time_s: Interval | None = None
    input_time_s: Interval | None = None
    near_memory_limit: bool = False

    @property
    def doubling_gain(self) -> float | None:
        """Relative growth of throughput over half the batch size; 1 is perfect doubling."""
        return None if self.doubling_efficiency is None else 2 * self.doubling_efficiency - 1


@dataclass(frozen=True)
class TimeModel:
    """Time per step = ``fixed_s`` + ``per_example_s`` × batch size, fitted in log space."""

    fixed_s: float
    per_example_s: float
    residual_log_rms: float


@dataclass(frozen=True)
class Comparison:
    """The same training with one option changed: time per step without it over that with it, by batch size.

    ``failures`` are sentences about what did not run with it, and why.
    """

    variant: str
    speedups: Mapping[int, Interval]
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Throughput:
    """What a measured sweep says: the table, the limits, and the time model."""

    workload: str
    fingerprint: str
    configuration: Configuration
    environment: Mapping[str, str]
    measured_at: str
    table: tuple[BatchThroughput, ...]
    largest_feasible_batch_size: int | None
    saturation_batch_size: int | None
    time_model: TimeModel | None
    bottleneck: Bottleneck | None = None
    diagnosis: InputDiagnosis | None = None
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def time_per_step_s(self, batch_size: int) -> Interval | None:
        """Return the measured time per step at ``batch_size``, or None where it did not run."""
        rows = (row.time_per_step_s for row in self.table if row.batch_size == batch_size)
        return next(rows, None)
