"""Metrics of a whole split, computed batch by batch and exact for any number of examples.

Every figure is what Keras would give for the split as one batch. The last batch is as short as it comes:
padding it would spoil metrics that ignore sample weights, and losses that reduce by a mask.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from advisor.training.data import Batch, Split
from advisor.training.loop import loss_of
from advisor.training.losses import LossPart, LossRecorder

_USUAL_BATCH_SIZE = 1024
_USUAL_BATCH_BYTES = 16 * 2**20


class BatchResult(NamedTuple):
    """What one batch adds: results of metrics so far, and fractions whose sums make up a mean."""

    running: Mapping[str, Any]
    numerators: Mapping[str, tf.Tensor]
    denominators: Mapping[str, tf.Tensor]


class Evaluator:
    """Evaluates one model; compiled once for each shape of batch, which ``on_trace`` is told of."""

    def __init__(
        self, model: keras.Model, recorder: LossRecorder, on_trace: Callable[[tf.Graph], None]
    ) -> None:
        self._model, self._recorder, self._on_trace = model, recorder, on_trace
        self._shapes: set[Any] = set()
        self._has_own_step = type(model).test_step is not keras.Model.test_step
        self._has_own_loss = type(model).compute_loss is not keras.Model.compute_loss
        self._keeps_results_in_metrics = True
        self._compiled = tf.function(self._step, autograph=False, jit_compile=False)

    def probe(self, head: Batch) -> tuple[Mapping[str, float], Sequence[LossPart]]:
        """Evaluate a few examples uncompiled, which builds all state; return metrics and losses found."""
        if self._has_own_step:
            logs = self._model.test_step(head)
            self._keeps_results_in_metrics = set(logs) <= set(self._model.get_metrics_result())
        self._model.reset_metrics()
        with self._recorder as parts:
            result = self._step(head)
        self._model.reset_metrics()
        return _combine([result]), parts

    def run(self, split: Split, batch_size: int) -> Mapping[str, float]:
        """Return the metrics of ``split``."""
        self._model.reset_metrics()
        results = []
        for batch in split.batches(batch_size):
            self._trace(batch)
            results.append(self._compiled(batch))
        return _combine(results)

    def prepare(self, split: Split, batch_size: int) -> None:
        """Make sure that something was traced, so that it is known what an evaluation touches."""
        if not self._shapes:
            self._trace(next(iter(split.batches(batch_size))))

    def _trace(self, batch: Batch) -> None:
        shapes = tuple(tuple(leaf.shape) for leaf in keras.tree.flatten(batch))
        if shapes not in self._shapes:
            self._shapes.add(shapes)
            self._on_trace(self._compiled.get_concrete_function(batch).graph)

    def _step(self, batch: Batch) -> BatchResult:
        return self._own_step(batch) if self._has_own_step else self._usual_step(batch)

    def _usual_step(self, batch: Batch) -> BatchResult:
        with self._recorder as parts:
            predictions, loss = loss_of(self._model, batch, training=False)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
        logs = self._model.compute_metrics(x, y, predictions, sample_weight=sample_weight)
        running = {name: value for name, value in logs.items() if name != "loss"}
        if self._has_own_loss or not parts:
            size = _examples(batch)
            return BatchResult(running, {"loss": tf.reduce_mean(loss) * size}, {"loss": size})
        numerators = tf.stack([part.numerator for part in parts])
        denominators = tf.stack([part.denominator for part in parts])
        return BatchResult(running, {"loss": numerators}, {"loss": denominators})

    def _own_step(self, batch: Batch) -> BatchResult:
        """Run the model's ``test_step``; what it does not keep in its metrics is a mean over examples."""
        if self._keeps_results_in_metrics:
            return BatchResult(self._model.test_step(batch), {}, {})
        self._model.reset_metrics()
        logs = self._model.test_step(batch)
        size = _examples(batch)
        means = {name: tf.reduce_mean(tf.cast(value, tf.float32)) for name, value in logs.items()}
        numerators = {name: mean * size for name, mean in means.items()}
        return BatchResult({}, numerators, dict.fromkeys(logs, size))


def evaluation_batch_size(example_bytes: int, training_batch_size: int) -> int:
    """Return a batch size at least as large as in training, the same for most training batch sizes.

    ``example_bytes`` counts inputs, labels and outputs. Evaluation keeps no activations for a backward pass,
    so that a batch that fits in training fits here.
    """
    fitting = max(1, _USUAL_BATCH_BYTES // max(1, example_bytes))
    return max(min(1 << (fitting.bit_length() - 1), _USUAL_BATCH_SIZE), training_batch_size)


def _examples(batch: Batch) -> tf.Tensor:
    return tf.cast(tf.shape(keras.tree.flatten(batch)[0])[0], tf.float32)


def _combine(results: Sequence[BatchResult]) -> Mapping[str, float]:
    """Return each mean over all batches, then the last state of each metric, element by element."""
    metrics: dict[str, float] = {}
    for name in results[0].numerators:
        numerator = sum(np.asarray(result.numerators[name], float) for result in results)
        denominator = sum(np.asarray(result.denominators[name], float) for result in results)
        metrics[name] = float(np.sum(numerator / np.where(denominator == 0, 1.0, denominator)))
    for name, value in results[-1].running.items():
        elements = np.asarray(value, float)
        if elements.ndim == 0:
            metrics[name] = float(elements)
        else:
            metrics |= {f"{name}_{index}": float(element) for index, element in enumerate(elements.flat)}
    return metrics
