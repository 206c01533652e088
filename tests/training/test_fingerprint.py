"""The fingerprint changes with what a result depends on, part by part, and with nothing else."""

import subprocess
import sys
import textwrap
from dataclasses import replace

import keras
import numpy as np
import pytest

from advisor import Float, Target, Workload

WORKLOAD = textwrap.dedent(
    """
    import keras
    import numpy as np
    from advisor import Float, Target, Workload

    class Scaled(keras.layers.Layer):
        def call(self, x):
            return 2 * x

    def build_model(hp):
        # A comment that may change.
        rate = hp.dropout
        hidden = keras.layers.Dense(4, activation="relu")
        dropout, last = keras.layers.Dropout(rate), keras.layers.Dense(1)
        return keras.Sequential([keras.Input((3,)), hidden, Scaled(), dropout, last])

    def load_data():
        x = np.random.normal(size=(20, 3))
        return {"train": (x, x[:, :1]), "validation": (x, x[:, :1])}

    def absolute(y_true, y_pred):
        return keras.ops.abs(y_true - y_pred)

    workload = Workload(
        "printed",
        build_model,
        load_data,
        absolute,
        optimizer=lambda hp: keras.optimizers.Adam(1e-3),
        target=Target("loss", at_most=1.0),
        search_space={"dropout": Float(0.0, 0.5, default=0.1)},
    )
    """
)


@pytest.fixture
def fingerprint_of(tmp_path, monkeypatch):
    """Return a function that gives the fingerprint of a workload file, changed as told."""
    from advisor.records.requests import WorkloadReference
    from advisor.training.keras_session import open_session

    monkeypatch.setattr(sys, "path", list(sys.path))
    count = iter(range(100))

    def fingerprint(*changes, **reference):
        text = WORKLOAD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"printed_{tmp_path.name}_{next(count)}.py"
        path.write_text(text)
        session = open_session(WorkloadReference(str(path), **reference))
        try:
            return session.describe().fingerprint
        finally:
            session.close()

    return fingerprint


CHANGES = {
    "comment": ((("may change.", "has changed."),), {}, ()),
    "width": ((("Dense(4,", "Dense(5,"),), {}, ("model",)),
    "activation": ((('"relu"', '"tanh"'),), {}, ("model",)),
    "custom layer": ((("2 * x", "3 * x"),), {}, ("model",)),
    "default that the model reads": ((("default=0.1", "default=0.2"),), {}, ("model",)),
    "fixed value that the model reads": ((), {"fixed": {"dropout": 0.3}}, ("model",)),
    "range": ((("0.5, default", "0.6, default"),), {}, ()),
    "optimizer": ((("Adam(1e-3)", "Adam(2e-3)"),), {}, ("optimizer",)),
    "fixed value of the optimizer": ((), {"fixed": {"momentum": 0.5}}, ("optimizer",)),
    "loss": ((("ops.abs(", "ops.square("),), {}, ("loss",)),
    "values": ((("x = np.random.normal(", "x = 1 + np.random.normal("),), {}, ("data_content",)),
    "size": ((("size=(20", "size=(21"),), {}, ("data_content", "data_shape")),
    "target": ((), {"target": Target("loss", at_most=2.0)}, ("target",)),
}


def test_each_change_shows_in_its_part_alone(fingerprint_of):
    before = fingerprint_of()
    for name, (changes, reference, parts) in CHANGES.items():
        assert set(before.changed(fingerprint_of(*changes, **reference))) == set(parts), name


def test_another_process_gives_the_same(fingerprint_of, tmp_path):
    before = fingerprint_of()
    (file,) = tmp_path.glob("printed_*.py")
    program = textwrap.dedent(
        f"""
        from advisor.records.requests import WorkloadReference
        from advisor.training.keras_session import open_session
        session = open_session(WorkloadReference({str(file)!r}))
        session.reset(4, {{"dropout": 0.4}}, seed=9)
        session.train(1)
        print(session.describe().fingerprint)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(before)


def test_what_a_function_closes_over_counts(open_workload):
    def workload(width):
        def build(hp):
            return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1 if hp.dropout < 2 else width)])

        return Workload(
            "closed",
            build,
            lambda: dict.fromkeys(("train", "validation"), (x, x)),
            "mse",
            search_space={"dropout": Float(0.0, 0.5, default=0.0)},
        )

    x = np.ones((4, 1))
    one, other = (open_workload(workload(width)).describe().fingerprint for width in (3, 4))
    assert one.changed(other) == ("model",)


def test_the_definition_of_the_targets_metric_counts(open_workload):
    x = np.ones((4, 1))
    plain = Workload(
        "metric",
        lambda hp: keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]),
        lambda: dict.fromkeys(("train", "validation"), (x, x)),
        "mse",
        [keras.metrics.MeanAbsoluteError(name="error")],
        target=Target("error", at_most=0.1),
    )
    other = replace(plain, metrics=[keras.metrics.MeanSquaredError(name="error")])
    more = replace(plain, metrics=[*plain.metrics, "mae"])
    first, second, third = (
        open_workload(workload).describe().fingerprint for workload in (plain, other, more)
    )
    assert first.changed(second) == ("target",)
    assert first == third
