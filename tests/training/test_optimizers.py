"""The advisor's optimizers take the steps of Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor.errors import WorkloadError
from advisor.training.optimizers import DEFAULTS, check_values, defaults_of, make_optimizer

STEPS = 5
KERAS = {
    "sgd": lambda momentum=0.0, **rest: keras.optimizers.SGD(momentum=momentum, **rest),
    "nesterov": lambda **rest: keras.optimizers.SGD(nesterov=True, **rest),
    "adam": keras.optimizers.Adam,
    "nadam": keras.optimizers.Nadam,
    "adamw": keras.optimizers.AdamW,
}


def after_steps(optimizer, dtype="float32"):
    """Return two weights after some steps along gradients that change in size and sign."""
    weights = [keras.Variable(np.full(3, 0.5), dtype=dtype), keras.Variable(np.ones((2, 2)), dtype=dtype)]
    optimizer.build(weights)
    noise = np.random.default_rng(0)
    for _ in range(STEPS):
        optimizer.apply([tf.constant(noise.normal(size=weight.shape), dtype) for weight in weights], weights)
    return [weight.numpy().astype("float64") for weight in weights]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", DEFAULTS)
def test_steps_are_those_of_keras(name, decay):
    values = {**DEFAULTS[name], "learning_rate": 0.05, "weight_decay": decay}
    held = make_optimizer(name, values)
    held.assign(values)
    options = {key: value for key, value in values.items() if key != "weight_decay"}
    reference = KERAS[name](**options, weight_decay=decay)
    for ours, theirs in zip(after_steps(held.optimizer), after_steps(reference), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4)


@pytest.mark.parametrize("name", ["sgd", "nesterov"])
def test_momentum_may_change_where_it_is_switched_on(name):
    values = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.0}
    held = make_optimizer(name, values)
    held.assign({**values, "momentum": 0.3, "learning_rate": 0.1})
    reference = KERAS[name](learning_rate=0.1, momentum=0.3)
    for ours, theirs in zip(after_steps(held.optimizer), after_steps(reference), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_every_hyperparameter_of_adam_may_change():
    held = make_optimizer("adam", DEFAULTS["adam"])
    values = {"learning_rate": 0.02, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-2, "weight_decay": 0.0}
    assert held.fits(values)
    held.assign(values)
    reference = keras.optimizers.Adam(0.02, 0.5, 0.9, 1e-2)
    for ours, theirs in zip(after_steps(held.optimizer), after_steps(reference), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_sparse_gradients_of_an_embedding_are_taken():
    values = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0}
    held = make_optimizer("nesterov", values)
    held.assign(values)
    table = keras.Variable(np.ones((4, 2)))
    held.optimizer.build([table])
    rows = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 1]), dense_shape=tf.constant([4, 2]))
    held.optimizer.apply([rows], [table])
    np.testing.assert_allclose(table.numpy()[:, 0], [1.0, 1.0 - 0.1 * 2 * 1.9, 1.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_weights_of_other_precision_are_taken(dtype):
    values = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.1}
    held = make_optimizer("nesterov", values)
    held.assign(values)
    expected = after_steps(KERAS["nesterov"](**values))
    for ours, theirs in zip(after_steps(held.optimizer, dtype), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2 if dtype == "float16" else 1e-5)


def test_an_unknown_optimizer_is_refused_and_the_known_are_named():
    with pytest.raises(WorkloadError, match=r"'adagrad'.*sgd, nesterov, adam, nadam, adamw"):
        defaults_of("adagrad")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", -1.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("momentum", 1.0),
        ("learning_rate", "high"),
        ("weight_decay", True),
    ],
)
def test_a_value_out_of_range_is_refused(name, value):
    with pytest.raises(WorkloadError, match=f"{name} is {value!r}; it must be"):
        check_values({**DEFAULTS["sgd"], name: value}, DEFAULTS["sgd"])
