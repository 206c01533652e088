"""Steps per second of the advisor's loop, beside the same steps written by hand and beside ``model.fit``.

Run ``python benchmarks/step_loop.py``. The digits network of the bundled workload, batch size 32, Nesterov
momentum. The three run in turn, so that a machine that slows down slows all of them; a ratio is the median
over the turns, between the order statistics that hold the true median with 95 % confidence.

Seen on 2 cores of an AMD EPYC that had some other work to do (TensorFlow 2.21, Keras 3.15):

    advisor       12,771 steps/s
    by hand       10,893 steps/s
    fit              434 steps/s
    advisor / by hand   1.15 [1.12, 1.35]   limit 0.9
    advisor / fit      26.89 [24.20, 31.29]   limit 3.0
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy.stats import binom

from advisor.records.requests import WorkloadReference
from advisor.training.keras_session import open_session

BATCH_SIZE, LEARNING_RATE, MOMENTUM = 32, 0.05, 0.9
LEAST_OF_HAND_WRITTEN, LEAST_OF_FIT = 0.9, 3.0

import keras  # noqa: E402 - the session sets the environment that TensorFlow reads
import tensorflow as tf  # noqa: E402

from advisor.training import digits  # noqa: E402

TakeSteps = Callable[[int], None]


def advisors_loop() -> TakeSteps:
    session = open_session(WorkloadReference("advisor.training.digits:workload"))
    session.reset(BATCH_SIZE, {"learning_rate": LEARNING_RATE, "momentum": MOMENTUM}, seed=0)
    return lambda steps: _finite(session.train(steps).training_loss)


def hand_written_loop() -> TakeSteps:
    """Everything that matters for speed, and nothing else, as one would write it for this network alone."""
    x, y = (tf.constant(part) for part in digits.load_data()["train"])
    model, optimizer = _model_and_optimizer()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    examples = len(x)
    per_epoch = examples // BATCH_SIZE

    @tf.function
    def train(epochs):
        total = 0.0
        for _ in tf.range(epochs):
            shuffled = tf.random.shuffle(tf.range(examples))[: per_epoch * BATCH_SIZE]
            order = tf.reshape(shuffled, [per_epoch, BATCH_SIZE])
            for row in tf.range(per_epoch):
                images, labels = tf.gather(x, order[row]), tf.gather(y, order[row])
                with tf.GradientTape() as tape:
                    loss = loss_of(labels, model(images, training=True))
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply(gradients, model.trainable_variables)
                total += loss
        return total / tf.cast(epochs * per_epoch, tf.float32)

    return lambda steps: _finite(float(train(tf.constant(steps // per_epoch))))


def keras_fit() -> TakeSteps:
    x, y = digits.load_data()["train"]
    model, optimizer = _model_and_optimizer()
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    per_epoch = len(x) // BATCH_SIZE
    x, y = x[: per_epoch * BATCH_SIZE], y[: per_epoch * BATCH_SIZE]

    def train(steps):
        history = model.fit(x, y, batch_size=BATCH_SIZE, epochs=round(steps / per_epoch), verbose=0)
        _finite(history.history["loss"][-1])

    return train


def _model_and_optimizer():
    keras.utils.set_random_seed(0)
    optimizer = keras.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM, nesterov=True)
    return digits.build_model(None), optimizer


def _finite(loss: float) -> None:
    assert np.isfinite(loss), "training diverged, so that what was timed is not training"


def steps_per_second(take_steps: TakeSteps, steps: int) -> float:
    start = perf_counter()
    take_steps(steps)
    return steps / (perf_counter() - start)


def median_and_interval(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the 95 % interval between order statistics, which assumes no distribution."""
    ordered = np.sort(values)
    lowest = int(binom.ppf(0.025, len(ordered), 0.5))
    return float(np.median(ordered)), float(ordered[max(0, lowest - 1)]), float(ordered[-max(1, lowest)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    loops = {"advisor": advisors_loop(), "by hand": hand_written_loop(), "fit": keras_fit()}
    steps = {"advisor": 43 * 100, "by hand": 43 * 100, "fit": 43 * 20}  # whole epochs of 43 steps
    for name, loop in loops.items():
        loop(steps[name])
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(turns):
        for name, loop in loops.items():
            rates[name].append(steps_per_second(loop, steps[name]))
    for name, values in rates.items():
        print(f"{name:<10} {np.median(values):>9,.0f} steps/s")
    reached = True
    for other, least in (("by hand", LEAST_OF_HAND_WRITTEN), ("fit", LEAST_OF_FIT)):
        pairs = zip(rates["advisor"], rates[other], strict=True)
        median, low, high = median_and_interval([ours / theirs for ours, theirs in pairs])
        print(f"advisor / {other:<8} {median:5.2f} [{low:.2f}, {high:.2f}]   limit {least}")
        reached &= median >= least
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
