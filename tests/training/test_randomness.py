"""The seed decides every random choice, whatever a model draws with, and evaluation draws nothing away."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Workload

DATA = {
    "train": (np.ones((32, 4), "float32"), np.ones((32, 1), "float32")),
    "validation": (np.ones((8, 4), "float32"), np.ones((8, 1), "float32")),
}


class Noisy(keras.Model):
    """Adds noise that ``draw`` gives, in evaluation too unless it is told not to."""

    def __init__(self, draw, always):
        super().__init__()
        self.draw, self.always, self.dense = draw, always, keras.layers.Dense(1)
        self.seeds = keras.random.SeedGenerator()

    def call(self, x, training=False):
        y = self.dense(x)
        return y + self.draw(self, y) if training or self.always else y


DRAWS = {
    "own generator": lambda model, y: keras.random.normal(keras.ops.shape(y), seed=model.seeds),
    "global generator": lambda model, y: keras.random.normal(keras.ops.shape(y)),
    "tensorflow": lambda model, y: tf.random.normal(tf.shape(y)),
}


def workload(draw, always=False):
    return Workload("noisy", lambda hp: Noisy(DRAWS[draw], always), lambda: DATA, "mse", optimizer="sgd")


def curve(session, seed, look=False):
    session.reset(8, {"learning_rate": 0.01}, seed)
    losses = []
    for _ in range(5):
        losses.append(session.train(1).training_loss)
        if look:
            session.evaluate("validation")
    return losses


@pytest.mark.parametrize("draw", DRAWS)
def test_the_seed_decides_what_a_model_draws(draw, open_workload):
    session, other = (open_workload(workload(draw)) for _ in range(2))
    first = curve(session, 1)
    assert len(set(first)) == 5
    assert curve(session, 2) != first
    assert curve(session, 1) == first
    assert curve(other, 1) == first


@pytest.mark.parametrize("draw", ["own generator", "global generator"])
def test_what_evaluation_draws_is_not_missing_in_training(draw, open_workload):
    session = open_workload(workload(draw, always=True))
    assert curve(session, 1, look=True) == curve(session, 1)


def by_tensorflow(shape, dtype=None):
    return tf.random.normal(shape, dtype=dtype or "float32")


def fixed(hp):
    kernel = keras.initializers.RandomNormal(seed=7)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer=kernel)])


def drawn_by_tensorflow(hp):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer=by_tensorflow)])


def drawn_by_numpy(hp):
    start = keras.initializers.Constant(np.random.normal(size=(4, 1)))
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer=start)])


@pytest.mark.parametrize("build", [drawn_by_tensorflow, drawn_by_numpy])
def test_the_seed_decides_weights_that_keras_does_not_draw(build, open_workload):
    session = open_workload(Workload("drawn", build, lambda: DATA, "mse"))
    first = curve(session, 1)
    assert curve(session, 2) != first
    assert curve(session, 1) == first


def test_initializers_with_a_seed_of_their_own_keep_it(open_workload):
    session = open_workload(Workload("fixed", fixed, lambda: DATA, "mse"))
    starts = []
    for seed in (1, 2):
        session.reset(8, {}, seed)
        starts.append(session.evaluate("validation").metrics["loss"])
        session.train(3)
    assert starts[0] == starts[1]


class Counting(keras.Model):
    """Keeps variables that Keras does not know of, and learns ever less with them."""

    def __init__(self):
        super().__init__()
        self.dense, self.scale = keras.layers.Dense(1), tf.Variable(2.0, trainable=False)
        self.calls = tf.Variable(1.0, trainable=False)

    def call(self, x, training=False):
        if training:
            self.calls.assign_add(1.0)
        return self.dense(x) * self.scale / self.calls


def test_variables_that_keras_does_not_know_start_again_and_are_kept(open_workload, tmp_path):
    session = open_workload(Workload("counting", lambda hp: Counting(), lambda: DATA, "mse"))
    first = curve(session, 1)
    assert curve(session, 1) == first
    session.save(tmp_path / "kept")
    expected = session.train(3).training_loss
    curve(session, 2)
    session.restore(tmp_path / "kept")
    assert session.train(3).training_loss == expected


class LooksCounted(Counting):
    """Counts evaluations alone, in a variable that training never sees."""

    def __init__(self):
        super().__init__()
        self.looks = tf.Variable(0.0, trainable=False)

    def call(self, x, training=False):
        if not training:
            self.looks.assign_add(1.0)
        return super().call(x, training=training)


def test_a_checkpoint_needs_nothing_that_evaluation_alone_uses(open_workload, tmp_path):
    looked, fresh = (
        open_workload(Workload("looks", lambda hp: LooksCounted(), lambda: DATA, "mse")) for _ in range(2)
    )
    looked.describe()
    curve(looked, 1, look=True)
    looked.save(tmp_path / "kept")
    fresh.reset(8, {"learning_rate": 0.01}, 2)
    fresh.restore(tmp_path / "kept")
    assert fresh.train(3).training_loss == looked.train(3).training_loss


shared = keras.layers.Dense(1)


def test_weights_that_outlive_a_training_are_refused(open_workload):
    from advisor.errors import WorkloadError

    build = lambda hp: keras.Sequential([keras.Input((4,)), shared])  # noqa: E731
    with pytest.raises(WorkloadError, match=r"made outside of it.*inside build_model"):
        open_workload(Workload("shared", build, lambda: DATA, "mse")).describe()


def two_heads(hp):
    x = keras.Input((4,))
    return keras.Model(x, [keras.layers.Dense(1)(x), keras.layers.Dense(1)(x)])


def test_names_of_metrics_are_the_same_for_every_model(open_workload):
    data = {name: (x, (y, y)) for name, (x, y) in DATA.items()}
    workload = Workload("two", two_heads, lambda: data, ["mse", "mae"], [["mae"], ["mae"]])
    session, other = open_workload(workload), open_workload(workload)
    session.reset(8, {"weight_decay": 0.1}, 0)
    names = tuple(session.evaluate("validation").metrics)
    assert names == session.describe().metrics == other.describe().metrics
