"""What other device counts and prices would give."""

from dataclasses import dataclass
from enum import StrEnum

from advisor.records.intervals import Interval
from advisor.records.recommendation import ResourceCost
from advisor.records.target import Target


@dataclass(frozen=True)
class DeviceOption:
    """So many devices, with their own price of a device-hour unless it is the same for all."""

    devices: int
    price_per_device_hour: float | None = None


class SynchronizationSource(StrEnum):
    """Where the share of a step that several devices wait for one another comes from."""

    MEASURED = "measured"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Synchronization:
    """The ``share`` of a step that synchronization takes on two devices or more, from 0 to below 1.

    ``devices`` is how many it was measured on, None where it was not.
    """

    share: float
    source: SynchronizationSource
    devices: int | None = None


class Extrapolation(StrEnum):
    """A part of an answer that lies outside of what was measured."""

    DEVICES = "devices"
    TIME_PER_STEP = "time_per_step"
    STEPS = "steps"


@dataclass(frozen=True)
class Scenario:
    """What one option would give at its fastest batch size (examples per step, over all devices).

    ``cost`` is None where steps to target are not known, and the batch size then that of the highest
    throughput. ``speed_up`` is the time to target on one device over that here, ``efficiency`` the same
    for each device. ``on_pareto_front`` says that no other option is as fast and as cheap.
    """

    option: DeviceOption
    batch_size: int
    time_per_step_s: Interval
    throughput_examples_per_s: Interval
    extrapolated: tuple[Extrapolation, ...]
    cost: ResourceCost | None = None
    speed_up: float | None = None
    on_pareto_front: bool = False

    @property
    def efficiency(self) -> float | None:
        """Speed-up for each device; 1 where twice the devices take half the time."""
        return None if self.speed_up is None else self.speed_up / self.option.devices


@dataclass(frozen=True)
class MeasuredRange:
    """What the answer rests on, as ranges of batch sizes, smallest and largest.

    ``per_device`` are those that were timed, for each of the ``devices``; ``trained`` those that reached the
    target, over all devices, None without a recommendation.
    """

    devices: int
    device_kind: str
    per_device: tuple[float, float]
    trained: tuple[int, int] | None


@dataclass(frozen=True)
class WhatIf:
    """The whole answer of ``advisor plan``; ``next`` is the command for what is missing, None for nothing."""

    workload: str
    target: Target | None
    measured: MeasuredRange
    synchronization: Synchronization
    currency: str
    scenarios: tuple[Scenario, ...]
    notes: tuple[str, ...]
    next: str | None
