"""Gradients of halves are those that a plain tape gives, and looking at them leaves no trace in training."""

from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Workload
from advisor.errors import SessionError
from advisor.training.data import ArraySplit
from advisor.training.gradient_noise import GradientProbe
from tests.training.zoo import BY_NAME, EXAMPLES, dense

BATCH_SIZE, HALF = 9, 4
SEED = 3


def squared_norm(gradients):
    return sum(float(tf.reduce_sum(tf.convert_to_tensor(one) ** 2)) for one in gradients)


def by_plain_tape(model, batch):
    """Return the gradients of the loss of ``batch`` as a user would compute them, uncompiled."""
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True), weight)
    return tape.gradient(loss, model.trainable_variables)


def rows(batch, start, stop):
    return keras.tree.map_structure(lambda leaf: leaf[start:stop], batch)


def open_at(open_workload, workload):
    session = open_workload(workload)
    session.reset(BATCH_SIZE, {}, SEED)
    session.train(3)
    return session, session._active


def words(hp):
    """Return a model with a mask and a sparse gradient."""
    embedding = keras.layers.Embedding(9, 4, mask_zero=True)
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            embedding,
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )


class OwnLoss(keras.Model):
    """Computes its loss itself."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        return keras.ops.mean(keras.ops.abs(y - y_pred)) + 0.1 * keras.ops.mean(keras.ops.square(y_pred))


def word_data():
    random = np.random.default_rng(0)
    split = random.integers(0, 9, size=(40, 6)).astype("int32"), random.normal(size=(40, 1)).astype("float32")
    return {"train": split, "validation": split}


# They differ in what the gradient passes through: weights, penalties, several outputs, a mask, an own loss.
DETERMINISTIC = [
    BY_NAME["by-weight"],
    BY_NAME["penalties"],
    BY_NAME["branched"],
    Workload("words", words, word_data, "mse", optimizer="sgd"),
    replace(BY_NAME["own-loss"], build_model=lambda hp: OwnLoss()),
]


@pytest.mark.parametrize("workload", DETERMINISTIC, ids=lambda workload: workload.name)
def test_gradients_are_those_of_a_plain_tape(workload, open_workload):
    session, program = open_at(open_workload, workload)
    found = session.gradient_norms(3)
    stream = program._splits["train"].stream(BATCH_SIZE, SEED + 1, 0)
    for norms, batch in zip(found, stream.take(3), strict=True):
        halves = [by_plain_tape(program.model, rows(batch, at, at + HALF)) for at in (0, HALF)]
        assert norms.batch_size == 2 * HALF
        assert norms.halves == pytest.approx([squared_norm(half) for half in halves], rel=1e-4)
        pairs = zip(*(map(tf.convert_to_tensor, half) for half in halves), strict=True)
        whole = squared_norm([(first + second) / 2 for first, second in pairs])
        assert norms.whole == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("name", ["weighted", "penalties"])
def test_the_whole_is_the_gradient_of_the_whole_batch(name, open_workload):
    session, program = open_at(open_workload, BY_NAME[name])
    (norms,) = session.gradient_norms(1)
    batch = next(iter(program._splits["train"].stream(BATCH_SIZE, SEED + 1, 0)))
    whole = squared_norm(by_plain_tape(program.model, rows(batch, 0, 2 * HALF)))
    assert norms.whole == pytest.approx(whole, rel=1e-4)


def trained(session, batches):
    """Return losses and metrics of a training that is looked into where ``batches`` is above 0."""
    session.reset(8, {}, SEED)
    seen = []
    for steps in (1, 3, EXAMPLES["train"] // 8):
        seen += [session.train(steps).training_loss, *session.evaluate("validation").metrics.values()]
        if batches:
            session.gradient_norms(batches)
    return seen


class Spectral(keras.Model):
    """Its steps forward change a weight, beside the random state of a dropout."""

    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.SpectralNormalization(keras.layers.Dense(6))
        self.dropout, self.last = keras.layers.Dropout(0.3), keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.last(self.dropout(self.hidden(x, training=training), training=training))


TRACELESS = [
    BY_NAME["normalized"],  # dropout and batch normalization
    BY_NAME["self-made"],
    replace(BY_NAME["lazy"], name="spectral", build_model=lambda hp: Spectral()),
]


@pytest.mark.parametrize("workload", TRACELESS, ids=lambda workload: workload.name)
def test_training_goes_on_exactly_as_if_nobody_had_looked(workload, open_workload):
    session = open_workload(workload)
    assert trained(session, 4) == trained(session, 0)


def test_a_dataset_is_trained_on_in_the_same_order(open_workload):
    rows = np.random.default_rng(0).normal(size=(60, 5)).astype("float32")

    def load():
        dataset = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1]))
        return {"train": dataset, "validation": dataset.take(20)}

    workload = Workload("streamed", dense(1), load, "mse", optimizer="sgd")
    session = open_workload(workload)
    assert trained(session, 4) == trained(session, 0)


def test_examples_of_different_length_need_one_program(open_workload):
    def examples():
        for index in range(40):
            yield np.full((1 + index % 7, 2), 0.1 * index, "float32"), np.ones(1, "float32")

    def load():
        signature = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((1,), tf.float32))
        dataset = tf.data.Dataset.from_generator(examples, output_signature=signature)
        return {"train": dataset, "validation": dataset.take(5)}

    def pooled(hp):
        pooling = keras.layers.GlobalMaxPooling1D()
        return keras.Sequential([keras.Input((None, 2)), pooling, keras.layers.Dense(1)])

    session = open_workload(Workload("ragged", pooled, load, "mse", optimizer="sgd"))
    session.reset(4, {}, 0)
    assert all(norms.whole > 0 for norms in session.gradient_norms(5))


def test_one_program_serves_every_look_at_a_batch_size(open_workload, monkeypatch):
    calls = []
    step = GradientProbe._step
    monkeypatch.setattr(
        GradientProbe, "_step", lambda probe, batch: calls.append(probe.batch_size) or step(probe, batch)
    )
    session = open_workload(BY_NAME["weighted"])
    for batch_size, seed in ((8, 0), (8, 1), (16, 0)):
        session.reset(batch_size, {}, seed)
        session.gradient_norms(2)
        session.train(2)
        session.gradient_norms(3)
    assert calls == [8, 16]


def probe(model, optimizer):
    """Return a probe of ``model``, whose weights stay as they are."""
    arrays = np.random.default_rng(0).normal(size=(40, 5)).astype("float32")
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    return GradientProbe(model, ArraySplit("train", (arrays, arrays[:, :1])), 8)


def test_seeds_have_batches_of_their_own():
    probed = probe(dense(1)(None), keras.optimizers.SGD())
    first, again, other = (probed.norms(3, seed) for seed in (0, 0, 2**32 - 1))
    assert first == again != other
    assert len({norms.whole for norms in first}) == 3


def test_the_scale_of_a_loss_in_16_bits_is_taken_out_again():
    model, plain = dense(1)(None), keras.optimizers.SGD()
    scaling = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    found = [probe(model, optimizer).norms(2, seed=0) for optimizer in (plain, scaling)]
    for expected, scaled in zip(*found, strict=True):
        assert scaled.whole == pytest.approx(expected.whole, rel=1e-5)
        assert scaled.halves == pytest.approx(expected.halves, rel=1e-5)


def test_a_training_step_of_the_models_own_is_told(open_workload):
    session = open_workload(BY_NAME["own-steps"])
    session.reset(8, {}, 0)
    with pytest.raises(SessionError, match=r"not available: OwnSteps has a train_step of its own"):
        session.gradient_norms(2)
    assert np.isfinite(session.train(2).training_loss)
