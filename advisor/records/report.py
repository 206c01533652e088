"""Everything known about one workload."""

from dataclasses import dataclass

from advisor.records.measurement import Throughput
from advisor.records.recommendation import Advice
from advisor.records.tuning import TuningResult


@dataclass(frozen=True)
class Report:
    """What has been recorded so far; None or empty where a command has not been run yet."""

    workload: str
    throughput: Throughput | None
    advice: Advice | None
    studies: tuple[TuningResult, ...]
    notes: tuple[str, ...]
    next: str
