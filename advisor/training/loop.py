"""The step loop: many optimizer steps in one call of one compiled program."""

import inspect
from collections.abc import Callable
from time import perf_counter
from typing import Any

import keras
import tensorflow as tf

from advisor.errors import WorkloadError
from advisor.records.session import BlockTiming
from advisor.training.data import Batch
from advisor.training.feeds import Feed

StepFunction = Callable[[Batch], tf.Tensor]
"""One optimizer step on a batch; returns the training loss, float32, shape ()."""


class StepLoop:
    """Takes optimizer steps at one batch size, counts them and times them."""

    def __init__(
        self,
        step_function: StepFunction,
        feed: Feed,
        strategy: tf.distribute.Strategy,
        steps_per_call: int | None = None,
    ) -> None:
        self.feed = feed
        self._steps_per_call = steps_per_call
        self._count = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._block = tf.function(self._steps, autograph=False, jit_compile=False)
        self._step_function, self._strategy = step_function, strategy

    @property
    def step(self) -> int:
        """Optimizer steps taken since the start."""
        return int(self._count)

    def start(self, seed: int, step: int) -> None:
        """Go to ``step`` of the order of examples that ``seed`` decides."""
        self._count.assign(step)
        self.feed.start(seed, step)

    @property
    def own_variables(self) -> list[tf.Variable]:
        """Variables of the loop that are no part of the training's state."""
        return [self._count, *self.feed.variables]

    def trace(self) -> tf.Graph:
        """Trace the loop; return its graph, which knows what variables it uses."""
        return self._block.get_concrete_function(tf.constant(0, tf.int64), self.feed.source).graph

    def warm_up(self) -> None:
        """Run the loop for no steps, so that the device is ready for the next call."""
        self._block(tf.constant(0, tf.int64), self.feed.source)

    def run(self, steps: int) -> BlockTiming:
        """Take ``steps`` steps and return when the device has finished."""
        source, longest = self.feed.source, self._steps_per_call or steps
        counts = [min(longest, steps - done) for done in range(0, steps, longest)]
        start = perf_counter()
        losses = [self._block(tf.constant(count, tf.int64), source) for count in counts]
        loss = sum(float(loss) * count for loss, count in zip(losses, counts, strict=True)) / steps
        tf.test.experimental.sync_devices()
        return BlockTiming(steps, perf_counter() - start, loss)

    def _steps(self, steps: tf.Tensor, source: Any) -> tf.Tensor:
        """Take ``steps`` (int64, shape ()) steps; return the mean training loss, NaN for no steps.

        An outer loop over segments spares the inner one to ask at each step whether an epoch has ended.
        """

        def segment(left: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            first, length = self.feed.segment(self._count, left)

            def step(position: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                batch = self.feed.batch(source, position)
                loss = self._strategy.run(self._step_function, args=(batch,))
                loss.set_shape([])
                return position + 1, total + loss

            _, total = tf.while_loop(lambda position, _: position < first + length, step, (first, total))
            self._count.assign_add(length)
            return left - length, total

        start = (steps, tf.zeros([], tf.float32))
        _, total = tf.while_loop(lambda left, _: left > 0, segment, start)
        return total / tf.cast(steps, tf.float32)


def step_function(model: keras.Model, xla: bool) -> StepFunction:
    """Return one step of ``model``: its own ``train_step`` where it has one, else a plain gradient step.

    ``xla`` compiles the step as one program of fused operations.
    """
    has_own = type(model).train_step is not keras.Model.train_step
    step = _own_step(model) if has_own else _gradient_step(model)
    return tf.function(step, autograph=False, jit_compile=True) if xla else step


def loss_of(model: keras.Model, batch: Batch, training: bool) -> tuple[Any, tf.Tensor]:
    """Return predictions and loss with penalties; a ``compute_loss`` of the user's may lack ``training``."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    predictions = model(x, training=training)
    if model.loss is None and not model.losses and type(model).compute_loss is keras.Model.compute_loss:
        raise WorkloadError(
            f"There is nothing to minimize: the workload names no loss, and {type(model).__name__} neither "
            "adds one nor computes its own. Give the workload a loss."
        )
    named = {"x": x, "y": y, "y_pred": predictions, "sample_weight": sample_weight}
    if "training" in inspect.signature(model.compute_loss).parameters:
        named["training"] = training
    return predictions, model.compute_loss(**named)


def _gradient_step(model: keras.Model) -> StepFunction:
    """Return a step that computes no training metrics, which would cost time and are not asked for."""

    def step(batch: Batch) -> tf.Tensor:
        with tf.GradientTape() as tape:
            _, loss = loss_of(model, batch, training=True)
            scaled = model.optimizer.scale_loss(loss)
        weights = model.trainable_variables
        model.optimizer.apply(tape.gradient(scaled, weights), weights)
        return tf.cast(tf.reduce_mean(loss), tf.float32)

    return step


def _own_step(model: keras.Model) -> StepFunction:
    """Return the model's own step; metrics start anew at each, so that the loss is of that step alone."""

    def step(batch: Batch) -> tf.Tensor:
        model.reset_metrics()
        logs = model.train_step(batch)
        losses = [logs["loss"]] if "loss" in logs else [logs[name] for name in logs if "loss" in name]
        if not losses:
            raise WorkloadError(
                f"train_step of {type(model).__name__} reports {', '.join(logs) or 'nothing'}, but no loss. "
                "Return a dict with a 'loss'."
            )
        return tf.cast(tf.add_n([tf.reduce_mean(loss) for loss in losses]), tf.float32)

    return step
