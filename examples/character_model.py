"""A character-level language model on text that every machine has: Python's own standard library."""

import importlib.util
from pathlib import Path

import keras
import numpy as np

from advisor import Int, Target, Workload

MODULES = (
    "argparse",
    "ast",
    "calendar",
    "configparser",
    "datetime",
    "decimal",
    "difflib",
    "doctest",
    "inspect",
)
LENGTH = 32
FIRST, LAST = 32, 126  # printable ASCII; everything else becomes one more character


def build_model(hp):
    width = int(hp.width)
    layers = [keras.Input((LENGTH,), dtype="int32"), keras.layers.Embedding(LAST - FIRST + 2, width)]
    layers += [
        keras.layers.Conv1D(width, 3, padding="causal", dilation_rate=2**depth, activation="relu")
        for depth in range(2)
    ]
    return keras.Sequential([*layers, keras.layers.Dense(LAST - FIRST + 2)])


def load_data():
    text = "".join(_source(module) for module in MODULES)
    codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8).astype("int32")
    codes = np.where((codes >= FIRST) & (codes <= LAST), codes - FIRST, LAST - FIRST + 1).astype("int32")
    windows = codes[: len(codes) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
    order = np.random.default_rng(0).permutation(len(windows))
    inputs, outputs = windows[order, :-1], windows[order, 1:]
    return {"train": (inputs[512:], outputs[512:]), "validation": (inputs[:512], outputs[:512])}


def _source(module):
    path = importlib.util.find_spec(module).origin
    return Path(path).read_text(encoding="utf-8")


workload = Workload(
    name="characters",
    build_model=build_model,
    data=load_data,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    optimizer="adam",
    target=Target("loss", at_most=2.3),
    search_space={"width": Int(16, 64, default=32)},
)
