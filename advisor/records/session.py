"""What a training session answers."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """What a reset had to do: whether a program was built anew, and the time that this took (s)."""

    rebuilt: bool
    compile_s: float


@dataclass(frozen=True)
class BlockTiming:
    """One block of optimizer steps, timed from its start until the device had finished.

    ``training_loss`` is the mean over the block; it is NaN or infinite where training diverged.
    """

    steps: int
    seconds: float
    training_loss: float


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one split after ``step`` optimizer steps, exact on a partial last batch."""

    step: int
    split: str
    metrics: Mapping[str, float]
    examples: int
    seconds: float
