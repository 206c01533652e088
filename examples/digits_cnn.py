"""A small convolutional network on scikit-learn's handwritten digits (1,797 images of 8 × 8 pixels)."""

import keras
import numpy as np
from sklearn.datasets import load_digits

from advisor import Float, Target, Workload


def build_model(hp):
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dropout(hp.dropout),
            keras.layers.Dense(10),
        ]
    )


def load_data():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = (digits.images[order, :, :, None] / 16.0).astype("float32")
    labels = digits.target[order].astype("int32")
    return {"train": (images[:1397], labels[:1397]), "validation": (images[1397:], labels[1397:])}


workload = Workload(
    name="digits-cnn",
    build_model=build_model,
    data=load_data,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    optimizer="nesterov",
    target=Target("loss", at_most=0.12),
    search_space={"dropout": Float(0.0, 0.5, default=0.0)},
)
