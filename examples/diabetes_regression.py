"""A regression on scikit-learn's diabetes data: disease progression from ten measurements of 442 people."""

import keras
import numpy as np
from sklearn.datasets import load_diabetes

from advisor import Target, Workload


def build_model(hp):
    return keras.Sequential(
        [
            keras.Input((10,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1, kernel_initializer="zeros"),
        ]
    )


def load_data():
    data, progression = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(progression))
    inputs = (data[order] / data.std()).astype("float32")
    outputs = progression[order, None]
    train = outputs[:342]
    outputs = ((outputs - train.mean()) / train.std()).astype("float32")
    return {"train": (inputs[:342], outputs[:342]), "validation": (inputs[342:], outputs[342:])}


workload = Workload(
    name="diabetes",
    build_model=build_model,
    data=load_data,
    loss="mean_squared_error",
    metrics=["mean_absolute_error"],
    optimizer="sgd",
    target=Target("loss", at_most=0.54),
)
