"""Where the step loop takes its batches from, inside the compiled program.

A feed is started at a step; it then gives the batches that follow, as a pure function of seed and step for
arrays, so that a restored run goes on exactly where it stopped.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import tensorflow as tf

from advisor.training.data import ArraySplit, Batch, Split, epoch_order, gather


class Feed(Protocol):
    """Batches for one batch size; ``segment`` and ``batch`` are called while the loop is traced."""

    @property
    def source(self) -> Any:
        """What the compiled loop must be handed at each call."""

    @property
    def variables(self) -> list[tf.Variable]:
        """Variables that the feed keeps for itself."""

    def start(self, seed: int, step: int) -> None:
        """Go to ``step`` of the order that ``seed`` decides."""

    def segment(self, step: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Prepare the steps from ``step`` on; return the first position and how many, at most ``limit``."""

    def batch(self, source: Any, position: tf.Tensor) -> Batch:
        """Return the batch at ``position`` of the segment."""


class ResidentFeed:
    """Gathers batches on the device, in a new order without replacement for each epoch."""

    def __init__(self, split: ArraySplit, batch_size: int) -> None:
        self.source: tuple[()] = ()
        self._tensors, self._examples = split.tensors, split.examples
        self._steps = split.examples // batch_size
        # Variables of int32 would live in the host's memory.
        self._rows = tf.Variable(tf.zeros([self._steps, batch_size], tf.int64), trainable=False)
        self._epoch = tf.Variable(-1, dtype=tf.int64, trainable=False)
        self._seed = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.variables = [self._rows, self._epoch, self._seed]

    def start(self, seed: int, step: int) -> None:
        """Forget the order of the epoch, so that the next segment makes it from ``seed``."""
        self._seed.assign(seed)
        self._epoch.assign(-1)

    def segment(self, step: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Make the order of the epoch that ``step`` lies in, and return what is left of it."""
        epoch, position = step // self._steps, step % self._steps

        def shuffle() -> tf.Tensor:
            order = epoch_order(self._seed, epoch, self._examples)
            self._rows.assign(tf.reshape(order[: tf.size(self._rows)], self._rows.shape))
            return self._epoch.assign(epoch)

        tf.cond(epoch != self._epoch, shuffle, self._epoch.read_value)
        return position, tf.minimum(limit, self._steps - position)

    def batch(self, source: Any, position: tf.Tensor) -> Batch:
        """Gather the examples of row ``position`` of the order."""
        return gather(self._tensors, tf.gather(self._rows, position))


class StreamFeed:
    """Takes batches from a ``tf.data`` pipeline, opened when the first of them is needed."""

    def __init__(self, split: Split, batch_size: int) -> None:
        self.variables: list[tf.Variable] = []
        self._split, self._batch_size = split, batch_size
        self._seed, self._step = 0, 0
        self._iterator: Iterator[Batch] | None = None

    @property
    def source(self) -> Iterator[Batch]:
        """The running iterator."""
        if self._iterator is None:
            self._iterator = iter(self._split.stream(self._batch_size, self._seed, self._step))
        return self._iterator

    def start(self, seed: int, step: int) -> None:
        """Let the next batch be that of ``step`` in the order of ``seed``."""
        self._seed, self._step, self._iterator = seed, step, None

    def segment(self, step: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return all steps: a pipeline has no end."""
        return tf.zeros([], tf.int64), limit

    def batch(self, source: Any, position: tf.Tensor) -> Batch:
        """Take the next batch."""
        return source.get_next()


def training_feed(split: Split, batch_size: int) -> Feed:
    """Return the faster feed that ``split`` allows."""
    if isinstance(split, ArraySplit) and split.is_resident:
        return ResidentFeed(split, batch_size)
    return StreamFeed(split, batch_size)
