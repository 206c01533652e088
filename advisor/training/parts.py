"""Parts of a training step that run by themselves: making batches, computing on them, the worst case."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from advisor.records.session import BlockTiming, StepPart
from advisor.training.data import Batch, Split, elements, have_known_shape
from advisor.training.feeds import Feed, training_feed
from advisor.training.host_calls import timing_host_calls
from advisor.training.loop import StepFunction, StepLoop

_SEED = 0
_DRAWN = 8
_LEARNING_SHARE = 0.25
_DRAWN_BYTES = 64 * 2**20

MakeLoop = Callable[[StepFunction, Feed], StepLoop]
"""Returns a traced loop of a step function over a feed."""


class CachedFeed:
    """Gives the same batch at every step."""

    def __init__(self, batch: Batch) -> None:
        self.source = keras.tree.map_structure(tf.constant, batch)
        self.variables: list[tf.Variable] = []

    def start(self, seed: int, step: int) -> None:
        """Do nothing: every step is alike."""

    def segment(self, step: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return all steps: a batch that stays has no end."""
        return tf.zeros([], tf.int64), limit

    def batch(self, source: Any, position: tf.Tensor) -> Batch:
        """Return the batch."""
        return source


class StepParts:
    """The parts of the training step at one batch size, each traced when it is first run."""

    def __init__(
        self,
        split: Split,
        batch_size: int,
        example_size: Callable[..., float] | None,
        step_function: StepFunction,
        make_loop: MakeLoop,
    ) -> None:
        self._split, self._batch_size, self._example_size = split, batch_size, example_size
        self._step_function, self._make_loop = step_function, make_loop
        self._loops: dict[StepPart, StepLoop] = {}

    def run(self, part: StepPart, steps: int) -> BlockTiming:
        """Take ``steps`` steps of ``part``."""
        if part not in self._loops:
            self._loops[part] = self._loop(part)
        if part is StepPart.INPUT:
            return replace(self._loops[part].run(steps), training_loss=math.nan)
        with timing_host_calls() as clock:
            timing = self._loops[part].run(steps)
        return replace(timing, host_seconds=clock.seconds)

    def _loop(self, part: StepPart) -> StepLoop:
        if part is StepPart.INPUT:
            return self._make_loop(_touch, training_feed(self._split, self._batch_size))
        return self._make_loop(self._step_function, CachedFeed(self._batch(part)))

    def _batch(self, part: StepPart) -> Batch:
        if part is StepPart.LONGEST:
            return self._split.largest(self._batch_size, self._example_size)
        return typical_batch(self._split, self._batch_size)


def typical_batch(split: Split, batch_size: int) -> Batch:
    """Return a shuffled training batch as numpy arrays: where sizes differ, the median of some.

    It stands for all in the time of a step; taking turns would cost time that is no part of computing.
    """
    stream = split.stream(batch_size, _SEED, 0)
    are_alike = have_known_shape(keras.tree.flatten(stream.element_spec))
    drawn: list[Batch] = []
    for batch in stream.take(1 if are_alike else _DRAWN).as_numpy_iterator():
        drawn.append(batch)
        if sum(leaf.nbytes for leaf in keras.tree.flatten(drawn)) > _DRAWN_BYTES:
            break
    return sorted(drawn, key=lambda batch: elements(*batch))[len(drawn) // 2]


def seconds_per_step(loop: StepLoop, seconds: float) -> float:
    """Return the mean time of the steps of ``loop`` in one call (s), in about ``seconds`` after a first step.

    Shorter calls before it tell how many steps that are; each has a cost of its own.
    """
    loop.start(0, 0)
    loop.run(1)
    block = loop.run(1)
    while block.seconds < _LEARNING_SHARE * seconds:
        block = loop.run(2 * block.steps)
    timed = loop.run(max(1, round(block.steps * (1 - _LEARNING_SHARE) * seconds / block.seconds)))
    return timed.seconds / timed.steps


def _touch(batch: Batch) -> tf.Tensor:
    """Return a number that cannot be known unless every leaf of ``batch`` was made."""
    return tf.add_n([_first_number(leaf) for leaf in keras.tree.flatten(batch)])


def _first_number(leaf: tf.Tensor) -> tf.Tensor:
    first = tf.reshape(leaf, [-1])[:1]
    if first.dtype == tf.string:
        first = tf.strings.length(first)
    return tf.reduce_sum(tf.cast(first, tf.float32))
