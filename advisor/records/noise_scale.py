"""The gradient noise scale: a hint at where larger batches stop paying in proportion."""

from dataclasses import dataclass

from advisor.records.intervals import Interval


@dataclass(frozen=True)
class NoiseScale:
    """What the gradients of one short training say, in examples; never the answer itself.

    It was measured at ``batch_size`` after ``trained_steps`` steps and took at most ``examples`` training
    examples.
    ``interval`` is None where nothing could be measured; where the mean gradient cannot be told from its
    noise, the estimate and the upper end are infinite. ``sentence`` says this in words, with the warning that
    an optimizer other than SGD calls for.
    """

    batch_size: int
    trained_steps: int
    examples: int
    interval: Interval | None
    optimizer_is_adaptive: bool
    sentence: str
