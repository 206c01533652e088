"""The bundled workload: scikit-learn's 1,797 handwritten digits and a small dense network."""

from typing import Any

import keras
import numpy as np
from sklearn.datasets import load_digits

from advisor.records.hyperparameters import Hyperparameters
from advisor.records.target import Target
from advisor.records.workload import Workload

TRAINING_EXAMPLES = 1397
_BRIGHTEST = 16.0


def build_model(hp: Hyperparameters) -> Any:
    """Return a dense network of 64 inputs, 64 hidden units and 10 logits."""
    return keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)]
    )


def load_data() -> dict[str, Any]:
    """Return 1,397 training and 400 validation images of 64 pixels in [0, 1], in one fixed order."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    pixels = (digits.data[order] / _BRIGHTEST).astype("float32")
    labels = digits.target[order].astype("int32")
    train, validation = slice(TRAINING_EXAMPLES), slice(TRAINING_EXAMPLES, None)
    return {"train": (pixels[train], labels[train]), "validation": (pixels[validation], labels[validation])}


workload = Workload(
    name="digits",
    build_model=build_model,
    data=load_data,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    optimizer="nesterov",
    target=Target("loss", at_most=0.1),
)
