"""Every kind of workload takes the steps that Keras would take, and is evaluated as Keras would."""

from dataclasses import replace

import keras
import numpy as np
import pytest

from advisor.records.hyperparameters import Hyperparameters
from advisor.training import evaluation
from advisor.training.data import epoch_order
from advisor.training.optimizers import DEFAULTS
from tests.training.zoo import EXAMPLES, ZOO, absolute

BATCH_SIZE, SEED, STEPS, LEARNING_RATE = 8, 5, 8, 0.02  # seven steps are an epoch
CHUNK = 16  # three batches make up the validation split, the last one partial


@pytest.fixture(autouse=True)
def small_evaluation_batches(monkeypatch):
    monkeypatch.setattr(evaluation, "_USUAL_BATCH_SIZE", CHUNK)


def keras_optimizer(name):
    made = {
        "sgd": keras.optimizers.SGD,
        "nesterov": lambda rate: keras.optimizers.SGD(rate, momentum=0.9, nesterov=True),
        "adam": keras.optimizers.Adam,
        "nadam": keras.optimizers.Nadam,
        "adamw": keras.optimizers.AdamW,
    }
    return made[name](LEARNING_RATE)


def trained_by_keras(workload):
    """Return the workload's model after the same steps, taken by ``train_on_batch``."""
    keras.utils.set_random_seed(SEED)
    model = workload.build_model(Hyperparameters(DEFAULTS[workload.optimizer]))
    model.compile(
        optimizer=keras_optimizer(workload.optimizer),
        loss=workload.loss,
        metrics=workload.metrics,
        run_eagerly=True,  # which saves compiling
    )
    per_epoch = EXAMPLES["train"] // BATCH_SIZE
    for step in range(STEPS):
        order = epoch_order(SEED, step // per_epoch, EXAMPLES["train"]).numpy()
        rows = order[step % per_epoch * BATCH_SIZE :][:BATCH_SIZE]
        batch = keras.tree.map_structure(lambda leaf, rows=rows: leaf[rows], as_tuples(workload))
        model.train_on_batch(*batch)
    return model


def as_tuples(workload, split="train"):
    return keras.tree.lists_to_tuples(workload.data()[split])


def penalties(model, x):
    model(x, training=False)
    return float(sum(keras.ops.sum(loss) for loss in model.losses))


def evaluated_by_keras(workload, model):
    """Return the figures of the validation split as one batch, loss without penalties."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(as_tuples(workload, "validation"))
    kept = [variable.numpy() for variable in model.variables]
    figures = model.evaluate(
        x, y, sample_weight=sample_weight, batch_size=EXAMPLES["validation"], verbose=0, return_dict=True
    )
    if workload.loss is not None:
        figures["loss"] -= penalties(model, x)
    for variable, value in zip(model.variables, kept, strict=True):
        variable.assign(value)
    return {name: np.asarray(value) for name, value in figures.items()}


@pytest.mark.parametrize("workload", ZOO, ids=lambda workload: workload.name)
def test_it_trains_and_evaluates_as_keras_does(workload, open_workload):
    session = open_workload(workload)
    session.reset(BATCH_SIZE, {"learning_rate": LEARNING_RATE}, SEED)
    session.train(1)
    session.evaluate("validation")
    session.train(STEPS - 1)
    figures = session.evaluate("validation").metrics
    expected = evaluated_by_keras(workload, trained_by_keras(workload))
    assert figures.keys() == expected.keys()
    for name, value in figures.items():
        assert value == pytest.approx(float(expected[name]), rel=2e-4, abs=1e-6), name


def test_a_loss_without_a_name_is_as_good_as_one_with_a_name(open_workload):
    named = next(workload for workload in ZOO if workload.name == "function")
    losses = []
    for loss in (absolute, lambda y_true, y_pred: 1.0 * absolute(y_true, y_pred)):
        session = open_workload(replace(named, loss=loss, metrics=()))
        session.reset(BATCH_SIZE, {"learning_rate": LEARNING_RATE}, SEED)
        losses.append(session.train(STEPS).training_loss)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
