"""Curves of steps to target that another program measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.records.recommendation import Advice, Objective, Prices
from advisor.records.scaling import Crossing


@dataclass(frozen=True)
class ImportRequest:
    """Read the runs of ``file``, fit a curve to those of each task, and advise where times are known.

    ``columns`` maps names that the advisor reads to those that the file uses instead; ``where`` keeps the
    lines alone whose cells, by the file's names, hold these values.
    """

    file: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    objective: Objective | None = None
    deadline_s: float | None = None
    max_cost: float | None = None
    overhead: float = 0.2
    prices: Prices = field(default_factory=Prices)
    seed: int = 0


@dataclass(frozen=True)
class ImportedRun:
    """One training to the target, as a line of a file tells it.

    ``task`` names the curve that it belongs to and is empty where the file has one curve alone. ``seed`` is
    kept as it is written, and empty where it is not known. ``unread`` are the cells that the advisor has
    no use for, by column.
    """

    batch_size: int
    crossing: Crossing
    task: str = ""
    learning_rate: float | None = None
    seed: str = ""
    time_per_step_s: float | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedCurve:
    """What the runs of one task say; ``advice`` recommends nothing where ``missing`` says what it lacks.

    ``notes`` are sentences about how the lines were read.
    """

    task: str
    runs: int
    advice: Advice
    missing: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ImportedCurves:
    """The answer of ``advisor import``: one curve for each task, in the order of the file."""

    file: str
    curves: tuple[ImportedCurve, ...]
