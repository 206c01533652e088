"""The best validation result of each batch size under one budget of steps or examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from advisor.records.description import Configuration
from advisor.records.intervals import Interval
from advisor.records.recommendation import Spent
from advisor.records.search_space import HyperparameterValue


class BudgetKind(StrEnum):
    """What every batch size gets the same amount of."""

    STEPS = "steps"
    EXAMPLES = "examples"


@dataclass(frozen=True)
class Budget:
    """What one training may use."""

    kind: BudgetKind
    amount: int

    def steps(self, batch_size: int) -> int:
        """Return how many optimizer steps the budget buys; 0 where it does not fill one batch."""
        return self.amount if self.kind is BudgetKind.STEPS else self.amount // batch_size

    def __str__(self) -> str:
        return f"{self.kind.value}={self.amount}"

    @property
    def words(self) -> str:
        """The budget as people read it."""
        return f"{self.amount:,} {self.kind.value if self.amount != 1 else self.kind.value.rstrip('s')}"


@dataclass(frozen=True)
class BudgetResult:
    """What a batch size reached with ``steps`` steps; its learning rate was tuned for just these.

    ``values`` are the best validation results of the fresh seeds, one each, of those that did not diverge
    (``diverged`` counts the others). ``time_s`` is what the steps of one training take.
    """

    batch_size: int
    steps: int
    best: Mapping[str, HyperparameterValue] | None
    at_edge: bool
    trials: int
    infeasible: int
    values: tuple[float, ...]
    diverged: int
    time_s: Interval | None

    @property
    def value(self) -> float | None:
        """The mean over the fresh seeds; None where all of them diverged."""
        return sum(self.values) / len(self.values) if self.values else None


@dataclass(frozen=True)
class Agreement:
    """Which batch sizes cannot be told from the best one.

    ``spread`` is the standard deviation from run to run, None where no batch size was trained twice;
    ``agree`` are then the batch sizes with the best mean alone.
    """

    best: int
    agree: tuple[int, ...]
    spread: float | None
    sentence: str


@dataclass(frozen=True)
class BudgetComparison:
    """Batch sizes under one budget, the smallest first."""

    workload: str
    configuration: Configuration
    metric: str
    maximize: bool
    budget: Budget
    results: tuple[BudgetResult, ...]
    agreement: Agreement
    caveats: tuple[str, ...]
    spent: Spent
    next: str
