"""A new trial trains with its own values, and rebuilds only where the model itself has read one."""

import keras
import numpy as np
import pytest

from advisor import Float, Int, Workload
from advisor.training import keras_session, optimizers
from advisor.training.program import Program

traces = []


def _data():
    noise = np.random.default_rng(0)
    x = noise.normal(size=(64, 4)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    return {"train": (x, y), "validation": (x, y)}


class Counted(keras.layers.Layer):
    """Notes every time that it is traced."""

    def call(self, x):
        traces.append(x.shape)
        return x


def with_dropout(hp):
    dropout = keras.layers.Dropout(hp.dropout)
    return keras.Sequential(
        [keras.Input((4,)), Counted(), keras.layers.Dense(32), dropout, keras.layers.Dense(1)]
    )


class ReadsLate(keras.Model):
    """Reads one value while it is called, and another only at batch size 16."""

    def __init__(self, hp):
        super().__init__()
        self.hp, self.dense = hp, keras.layers.Dense(1)

    def call(self, x):
        scale = self.hp.scale_at_16 if x.shape[0] == 16 else 1.0
        return self.dense(x) * self.hp.scale * scale


def workload(build_model, optimizer="nesterov", **search_space):
    return Workload("trial", build_model, _data, "mse", (), optimizer, None, search_space)


def curve(session, batch_size=8, seed=1, **values):
    preparation = session.reset(batch_size, values, seed)
    return [session.train(1).training_loss for _ in range(4)], preparation


DROPOUT = {"dropout": Float(0.0, 0.9, default=0.0)}


def test_a_trial_with_another_dropout_trains_with_it(open_workload):
    session, fresh = (open_workload(workload(with_dropout, **DROPOUT)) for _ in range(2))
    without, _ = curve(session)
    strong, preparation = curve(session, dropout=0.8)
    assert preparation.rebuilt
    assert preparation.compile_s > 0
    assert strong != without
    assert strong == curve(fresh, dropout=0.8)[0]
    again, preparation = curve(session)
    assert again == without
    assert not preparation.rebuilt


def test_values_of_the_optimizer_neither_rebuild_nor_trace(open_workload):
    session = open_workload(workload(with_dropout, **DROPOUT))
    losses = {tuple(curve(session, learning_rate=0.01, momentum=0.9)[0])}
    before = len(traces)
    for values in ({"learning_rate": 0.02}, {"momentum": 0.5}, {"learning_rate": 0.005, "momentum": 0.99}):
        session_losses, preparation = curve(session, **values)
        assert not preparation.rebuilt
        losses.add(tuple(session_losses))
    session.train(7)
    session.train(31)
    assert len(losses) == 4
    # Fresh weights come from a model that is built anew and called with a symbol, not traced by the loop.
    assert {shape[0] for shape in traces[before:]} <= {None}


def test_a_value_that_is_read_while_tracing_rebuilds(open_workload):
    space = {"scale": Float(0.1, 2.0, default=1.0), "scale_at_16": Float(0.1, 2.0, default=1.0)}
    session = open_workload(workload(ReadsLate, **space))
    plain, _ = curve(session)
    scaled, preparation = curve(session, scale=0.5)
    assert preparation.rebuilt
    assert scaled != plain


def test_a_value_that_is_read_at_a_later_batch_size_is_the_present_one(open_workload):
    space = {"scale": Float(0.1, 2.0, default=1.0), "scale_at_16": Float(0.1, 2.0, default=1.0)}
    session, fresh = (open_workload(workload(ReadsLate, **space)) for _ in range(2))
    curve(session, scale_at_16=1.0)
    assert not curve(session, scale_at_16=0.5)[1].rebuilt
    assert (
        curve(session, batch_size=16, scale_at_16=0.5)[0] == curve(fresh, batch_size=16, scale_at_16=0.5)[0]
    )


def with_penalty(hp):
    penalty = keras.regularizers.L2(hp.weight_decay)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_regularizer=penalty)])


def test_weight_decay_that_the_model_applies_is_not_applied_again(open_workload):
    session = open_workload(workload(with_penalty, "adamw"))
    assert "weight_decay" not in session.describe().optimizer_hyperparameters
    applied_by_model, _ = curve(session, weight_decay=0.1)
    program = session._active
    assert program._optimizer_values(program._hp._values)["weight_decay"] == 0.0
    assert program.model.optimizer.weight_decay is None
    assert applied_by_model != curve(session, weight_decay=0.0)[0]


def test_switching_weight_decay_on_rebuilds_once(open_workload):
    session = open_workload(workload(with_dropout, **DROPOUT))
    off, _ = curve(session)
    on, preparation = curve(session, weight_decay=0.1)
    assert preparation.rebuilt
    other, preparation = curve(session, weight_decay=0.2)
    assert not preparation.rebuilt
    assert len({tuple(losses) for losses in (off, on, other)}) == 3


def test_a_search_space_of_a_study_adds_to_the_workloads_and_fixed_values_become_defaults(open_workload):
    def with_width(hp):
        dropout, hidden = keras.layers.Dropout(hp.dropout), keras.layers.Dense(hp.width)
        return keras.Sequential([keras.Input((4,)), hidden, dropout, keras.layers.Dense(1)])

    session = open_workload(
        workload(with_width, **DROPOUT),
        search_space={"learning_rate": Float(1e-3, 1.0, log=True), "width": Int(1, 4)},
        fixed={"momentum": 0.5, "dropout": 0.25},
    )
    description = session.describe()
    assert set(description.search_space) == {"learning_rate", "width"}
    assert description.optimizer_hyperparameters == {"learning_rate": 0.01, "weight_decay": 0.0}
    assert curve(session)[0] == curve(session, momentum=0.5, dropout=0.25)[0]


def test_programs_are_kept_up_to_a_number(open_workload, monkeypatch):
    built = []
    monkeypatch.setattr(Program, "__init__", _counting(built, Program.__init__))
    monkeypatch.setattr(keras_session, "_KEPT_PROGRAMS", 2)
    session = open_workload(workload(with_dropout, **DROPOUT))
    for dropout in (0.1, 0.2, 0.3):
        session.reset(8, {"dropout": dropout}, 0)
    assert len(session._programs) == 2
    assert not session.reset(8, {"dropout": 0.2}, 0).rebuilt
    assert session.reset(8, {"dropout": 0.1}, 0).rebuilt
    assert len(built) == 4


def _counting(calls, function):
    def counted(*arguments):
        calls.append(None)
        function(*arguments)

    return counted


# The user's own optimizer


def own_sgd(hp):
    return keras.optimizers.SGD(0.5 * hp.learning_rate, momentum=hp.momentum)


def test_a_learning_rate_of_the_users_optimizer_is_taken_over_and_anything_else_rebuilds(open_workload):
    session = open_workload(workload(with_dropout, own_sgd, **DROPOUT))
    description = session.describe()
    assert description.optimizer == optimizers.CUSTOM
    assert set(description.optimizer_hyperparameters) == {"learning_rate"}
    slow, _ = curve(session, learning_rate=0.001, momentum=0.5)
    fast, preparation = curve(session, learning_rate=0.01, momentum=0.5)
    assert not preparation.rebuilt
    assert fast != slow
    assert curve(session, learning_rate=0.01, momentum=0.9)[1].rebuilt
    assert session._active.model.optimizer.momentum == 0.9
    assert float(session._active.model.optimizer.learning_rate.numpy()) == pytest.approx(0.005)


def scheduled(hp):
    return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(hp.learning_rate, 1, 0.5))


def test_a_schedule_is_no_value_and_rebuilds(open_workload):
    session = open_workload(workload(with_dropout, scheduled, **DROPOUT))
    assert session.describe().optimizer_hyperparameters == {}
    slow, _ = curve(session, learning_rate=0.001)
    fast, preparation = curve(session, learning_rate=0.01)
    assert preparation.rebuilt
    assert fast != slow


class SignDescent(keras.optimizers.SGD):
    """An optimizer that Keras does not know."""

    def update_step(self, gradient, variable, learning_rate):
        variable.assign_sub(learning_rate * keras.ops.sign(gradient))


def test_an_optimizer_that_keras_does_not_know_is_built_anew(open_workload):
    session = open_workload(workload(with_dropout, lambda hp: SignDescent(hp.learning_rate), **DROPOUT))
    assert session.describe().optimizer_hyperparameters == {}
    assert curve(session, learning_rate=0.01)[1].compile_s > 0
    assert not curve(session, learning_rate=0.01, momentum=0.5)[1].rebuilt
    assert curve(session, learning_rate=0.02)[1].rebuilt
