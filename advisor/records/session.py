"""What a training session answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Preparation:
    """What a reset had to do: whether a program was built anew, and the time that this took (s)."""

    rebuilt: bool
    compile_s: float


class StepPart(StrEnum):
    """A part of a training step that can be run by itself."""

    INPUT = "input"
    """The input pipeline alone: batches are made and thrown away."""
    COMPUTE = "compute"
    """Training steps on one batch that stays where it is."""
    LONGEST = "longest"
    """Training steps on a batch that repeats the largest example, the worst case for memory."""


@dataclass(frozen=True)
class BlockTiming:
    """One block of optimizer steps, timed from its start until the device had finished.

    ``training_loss`` is the mean over the block; it is NaN or infinite where training diverged, and NaN
    where nothing was trained. ``host_seconds`` were spent in Python functions that the steps called.
    """

    steps: int
    seconds: float
    training_loss: float
    host_seconds: float = 0.0


@dataclass(frozen=True)
class MemoryUse:
    """Memory of a session since its last reset (bytes); None where it cannot be known.

    ``peak_bytes`` is resident on the device. ``limit_bytes`` is where an allocation fails, and
    ``charged_bytes`` the peak of what counts towards it.
    """

    peak_bytes: int | None = None
    limit_bytes: int | None = None
    charged_bytes: int | None = None


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one split after ``step`` optimizer steps, exact on a partial last batch."""

    step: int
    split: str
    metrics: Mapping[str, float]
    examples: int
    seconds: float


@dataclass(frozen=True)
class GradientNorms:
    """Squared norms of the gradient of one training batch of ``batch_size`` examples, an even number.

    ``halves`` are those of its first and second half. The gradient of the whole batch, with the squared norm
    ``whole``, is the mean of the two, as two devices would average theirs. A norm that is too large for a
    float is infinite or NaN.
    """

    batch_size: int
    whole: float
    halves: tuple[float, float]
