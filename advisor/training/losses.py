"""Losses that also say how they were reduced, so that a whole split's loss is exact from its batches.

Keras reduces a loss per batch: a sum, a mean over elements, over those that a mask leaves, or over weights.
The loss of a split as if it were one batch is the sum of numerators over the sum of denominators.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from advisor.errors import WorkloadError
from advisor.training.faults import brief

_BY_SHAPE = ("crossentropy", "ce")


class LossPart(NamedTuple):
    """One loss of one batch: numerator / denominator, both float32 of shape (); a plain sum has 0 below."""

    loss: "RecordedLoss"
    labels: Any
    predictions: Any
    numerator: tf.Tensor
    denominator: tf.Tensor


class LossRecorder:
    """Collects the parts of the losses that are computed while it is on."""

    def __init__(self) -> None:
        self.parts: list[LossPart] = []
        self.depth = 0

    def wrap(self, losses: Any) -> Any:
        """Return ``losses``, as ``compile`` takes them, with every one recorded."""
        if losses is None:
            return None
        return keras.tree.map_structure(
            lambda loss: None if loss is None else RecordedLoss(loss, self), losses
        )

    def __enter__(self) -> list[LossPart]:
        """Switch on; inside another ``with`` the parts go to both."""
        self.depth += 1
        return self.parts

    def __exit__(self, *exception: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.parts = []


class RecordedLoss(keras.losses.Loss):  # type: ignore[misc]
    """A loss of the user's, computed as Keras would, that tells the recorder how it was reduced."""

    def __init__(self, identifier: Any, recorder: LossRecorder) -> None:
        self.identifier = identifier
        self._recorder = recorder
        self._loss: keras.losses.Loss | None = None
        super().__init__(name=_name(identifier))

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tf.Tensor:
        """Return the loss of a batch, reduced as the user's loss reduces it."""
        if self._loss is None:
            self._loss = _resolve(self.identifier, y_true, y_pred)
        try:
            value = self._loss(y_true, y_pred, sample_weight)
        except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            raise WorkloadError(
                f"The loss {self.name} does not fit labels of shape {_shape(y_true)} and outputs of shape "
                f"{_shape(y_pred)} (the first number counts examples). {brief(error)}"
            ) from error
        if self._recorder.depth:
            fraction = _fraction(self._loss, value, y_true, y_pred, sample_weight)
            self._recorder.parts.append(LossPart(self, y_true, y_pred, *fraction))
        return value

    @property
    def keras_function(self) -> str:
        """Name of the function of Keras that computes it, or nothing where that is the user's own."""
        function = getattr(self._loss, "fn", None)
        is_keras = getattr(function, "__module__", "").startswith("keras.")
        return function.__name__ if is_keras and function else ""

    @property
    def options(self) -> Mapping[str, Any]:
        """How it was configured, such as ``from_logits``."""
        return self._loss.get_config() if self._loss is not None and self.keras_function else {}

    def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
        """Return the loss of each element."""
        assert self._loss is not None
        return self._loss.call(y_true, y_pred)


def _shape(structure: Any) -> str:
    return " and ".join(str(tuple(leaf.shape)) for leaf in keras.tree.flatten(structure))


def _resolve(identifier: Any, y_true: Any, y_pred: Any) -> keras.losses.Loss:
    """Return the loss object that Keras makes of a name, a function or a class."""
    if isinstance(identifier, str) and identifier.lower() in _BY_SHAPE:
        return _crossentropy(y_true, y_pred)
    found = keras.losses.get(identifier)
    if isinstance(found, keras.losses.Loss):
        return found
    # What Keras itself wraps functions in; it is public through its children alone.
    return keras.losses.MeanSquaredError.__base__(found, name=_name(found))


def _name(identifier: Any) -> str:
    """Return a name that TensorFlow takes, which ``<lambda>`` is not."""
    named = identifier if isinstance(identifier, str) else getattr(identifier, "name", None)
    named = str(named or getattr(identifier, "__name__", type(identifier).__name__))
    return re.sub(r"\W", "", named) or "loss"


def _crossentropy(y_true: Any, y_pred: Any) -> keras.losses.Loss:
    if y_pred.shape[-1] == 1:
        return keras.losses.BinaryCrossentropy()
    sparse = len(y_true.shape) < len(y_pred.shape) or y_true.shape[-1] == 1
    return keras.losses.SparseCategoricalCrossentropy() if sparse else keras.losses.CategoricalCrossentropy()


def _fraction(
    loss: keras.losses.Loss, value: tf.Tensor, y_true: Any, y_pred: Any, sample_weight: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the numerator and denominator of the loss ``value`` of a batch.

    A loss function that reduced its elements itself counts by examples, as Keras counts it.
    """
    value = tf.reduce_mean(tf.cast(value, tf.float32))
    labels, predictions = keras.tree.map_structure(
        lambda tensor: keras.ops.convert_to_tensor(tensor, dtype=loss.dtype), (y_true, y_pred)
    )
    elements = loss.call(labels, predictions)
    if elements.shape.rank == 0:
        size = tf.cast(tf.shape(keras.tree.flatten(y_pred)[0])[0], tf.float32)
    elif loss.reduction == "sum":
        return value, tf.zeros([], tf.float32)
    else:
        size = _size(loss.reduction, elements, _mask(y_pred, elements), sample_weight)
    return value * size, size


def _size(
    reduction: str | None, elements: tf.Tensor, mask: tf.Tensor | None, sample_weight: Any
) -> tf.Tensor:
    """Return by what ``reduction`` divides the sum over elements."""
    if reduction == "mean_with_sample_weight" and (sample_weight is not None or mask is not None):
        return _total_weight(sample_weight, mask)
    size = tf.cast(tf.size(elements), tf.float32)
    if mask is None or reduction in (None, "none"):
        return size
    return size * tf.reduce_mean(mask)


def _mask(y_pred: Any, elements: tf.Tensor) -> tf.Tensor | None:
    """Return the product of the masks that Keras attached to predictions and elements, as float32."""
    attached = (getattr(tensor, "_keras_mask", None) for tensor in (y_pred, elements))
    masks = [tf.cast(mask, tf.float32) for mask in attached if mask is not None]
    if not masks:
        return None
    return masks[0] if len(masks) == 1 else masks[0] * masks[1]


def _total_weight(sample_weight: Any, mask: tf.Tensor | None) -> tf.Tensor:
    if sample_weight is None:
        return tf.reduce_sum(mask)
    weight = tf.cast(sample_weight, tf.float32)
    if mask is None:
        return tf.reduce_sum(weight)
    while weight.shape.rank < mask.shape.rank:
        weight = weight[..., None]
    return tf.reduce_sum(weight * mask)
