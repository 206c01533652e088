"""Squared norms of the gradients of batches and of their halves, from which the noise scale follows."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from advisor.errors import SessionError
from advisor.records.session import GradientNorms
from advisor.training.data import Batch, Split
from advisor.training.graphs import forget_gradients, variables_of
from advisor.training.loop import loss_of
from advisor.training.randomness import valid_seed

Gradients = Sequence[tf.Tensor]


class GradientProbe:
    """Looks at the gradients of one model at one batch size; compiled once, when it is first needed.

    The loss of each half is that of a training step: weighted by sample weights, with penalties, and with
    dropout and batch normalization at work in each half by itself, as on two devices.
    """

    def __init__(self, model: keras.Model, split: Split, batch_size: int) -> None:
        if type(model).train_step is not keras.Model.train_step:
            raise SessionError(
                f"The gradient noise scale is not available: {type(model).__name__} has a train_step of its "
                "own, which does not tell its gradient."
            )
        if batch_size < 2:
            raise SessionError("A batch of 1 example has no halves: reset with batch size 2 or more.")
        self.batch_size = batch_size
        self._model, self._split, self._half = model, split, batch_size // 2

    def norms(self, batches: int, seed: int) -> tuple[GradientNorms, ...]:
        """Return the norms of ``batches`` batches in an order other than that of a training with ``seed``."""
        if batches < 1:
            raise SessionError(f"{batches} batches were asked for; ask for at least 1.")
        stream = self._split.stream(self.batch_size, valid_seed(seed + 1), 0)
        # A step forward moves averages and random states, and in some layers weights.
        kept = [(variable, variable.read_value()) for variable in variables_of(self._compiled.graph)]
        try:
            found = [self._compiled(batch) for batch in stream.take(batches)]
        finally:
            for variable, value in kept:
                variable.assign(value)
        return tuple(self._norms(*(float(norm) for norm in norms)) for norms in found)

    @cached_property
    def _compiled(self) -> Any:
        """The compiled function of a batch, for batches of every length where examples differ."""
        spec = self._split.stream(self.batch_size, 0, 0).element_spec
        compiled = tf.function(self._step, autograph=False, jit_compile=False).get_concrete_function(spec)
        forget_gradients(compiled.graph)
        return compiled

    def _step(self, batch: Batch) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return the squared norms for the whole of ``batch`` and its halves, each float32 of shape ()."""
        halves = [self._gradients(_rows(batch, start, self._half)) for start in (0, self._half)]
        whole = [(first + second) / 2 for first, second in zip(*halves, strict=True)]
        return _squared_norm(whole), _squared_norm(halves[0]), _squared_norm(halves[1])

    def _gradients(self, batch: Batch) -> Gradients:
        """Return the gradients of the loss; those of 16-bit precision pass through the optimizer's scale."""
        scale = self._model.optimizer.scale_loss(tf.ones([]))
        with tf.GradientTape() as tape:
            _, loss = loss_of(self._model, batch, training=True)
            scaled = self._model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self._model.trainable_variables)
        known = (tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None)
        return [tf.cast(gradient, tf.float32) / scale for gradient in known]

    def _norms(self, whole: float, first: float, second: float) -> GradientNorms:
        return GradientNorms(2 * self._half, whole, (first, second))


def _rows(batch: Batch, start: int, count: int) -> Batch:
    return keras.tree.map_structure(lambda leaf: leaf[start : start + count], batch)


def _squared_norm(gradients: Gradients) -> tf.Tensor:
    return tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in gradients])
