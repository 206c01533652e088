"""The fingerprint changes with what a result depends on, part by part, and with nothing else."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import cloudpickle
import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Float, Target, Workload
from advisor.records.requests import WorkloadReference
from advisor.training.fingerprint import code_of
from advisor.training.loading import load_workload
from advisor.training.portraits import Portraits

WORKLOAD = textwrap.dedent(
    """
    import keras
    import numpy as np
    from advisor import Float, Target, Workload

    CLIP, FACTOR, SHIFT, OFFSET = 1, 2, 3.0, 0.0
    SETTINGS = {"power": [1]}

    class Base(keras.layers.Layer):
        def scaled(self, x):
            return x + 1

    def shifted(x):
        return x - SHIFT

    class Scaled(Base):
        def call(self, x):
            return shifted(self.scaled(2 * x)) * FACTOR

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
        return keras.ops.abs(y_true - y_pred - OFFSET) ** SETTINGS["power"][0]

    workload = Workload(
        "printed",
        build_model,
        load_data,
        absolute,
        optimizer=lambda hp: keras.optimizers.SGD(hp.learning_rate, hp.momentum, clipnorm=CLIP),
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
    "fixed value that the model reads": ((), {"fixed": {"dropout": 0.3}}, ("model", "optimizer")),
    "range": ((("0.5, default", "0.6, default"),), {}, ()),
    "optimizer": ((("SGD(hp.", "SGD(2 * hp."),), {}, ("optimizer",)),
    "constant of the optimizer": ((("= 1, 2,", "= 9, 2,"),), {}, ("optimizer",)),
    "constant of a layer": ((("2, 3.0", "4, 3.0"),), {}, ("model",)),
    "constant of a function that a layer calls": ((("3.0, 0.0", "3.5, 0.0"),), {}, ("model",)),
    "function that a layer calls": ((("x - SHIFT", "x * SHIFT"),), {}, ("model",)),
    "base class": ((("x + 1", "x + 2"),), {}, ("model",)),
    "constant of the loss": ((("3.0, 0.0", "3.0, 0.5"),), {}, ("loss",)),
    "item of a constant of the loss": ((("[1]}", "[2]}"),), {}, ("loss",)),
    "fixed learning rate": ((), {"fixed": {"learning_rate": 0.1}}, ("optimizer",)),
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


def test_a_fixed_learning_rate_counts_by_its_value(fingerprint_of):
    one, other = (fingerprint_of(fixed={"learning_rate": value}) for value in (0.1, 0.5))
    assert one.changed(other) == ("optimizer",)


NOTHING = {
    "line numbers": (("CLIP, FACTOR", "\n\n\nCLIP, FACTOR"),),
    "layout": (("2 * x)) * FACTOR", "2  *  x))  *  FACTOR  # scaled"),),
    "a global that no code names": (("CLIP, FACTOR", "OTHER = 7\nCLIP, FACTOR"),),
    "a function that no code names": (("def shifted", "def other(x):\n    return x\n\ndef shifted"),),
    "order": (("SETTINGS = {", "SETTINGS = {**{}, "),),
}


def test_what_does_not_matter_changes_nothing(fingerprint_of):
    before = fingerprint_of()
    assert fingerprint_of() == before
    for name, changes in NOTHING.items():
        assert before.changed(fingerprint_of(*changes)) == (), name


TOLD = """
    import os
    import keras, numpy as np, tensorflow as tf
    from advisor import Workload
    from {neighbour} import Doubled, RATE
    import {neighbour} as beside

    HERE, KINDS = os.path.dirname(__file__), frozenset({{"relu", "tanh", "gelu"}})
    calls, count = [], 0

    class Counted(keras.layers.Layer):
        def call(self, x):
            global count
            count += 1
            calls.append(tuple(x.shape))
            return x

    def around(width, activation="relu", **options):
        return keras.layers.Dense(width, activation=activation) if activation in KINDS else around(width)

    @tf.function
    def halved(x):
        return x * RATE

    class Loss(keras.losses.Loss):
        def __init__(self, power):
            super().__init__()
            self.power = power

        def call(self, y_true, y_pred):
            return keras.ops.abs(halved(y_true - y_pred)) ** self.power / beside.SCALE

    def build_model(hp):
        assert os.path.isdir(HERE)
        assert "softmax" not in ("relu", "tanh") and "relu" in {{"relu", "tanh", "elu", "selu"}}
        return keras.Sequential([keras.Input((3,)), around(4), Counted(), Doubled(), around(1)])

    def load_data():
        calls.append("data")
        x = np.ones((20, 3))
        return {{"train": (x, x[:, :1]), "validation": (x, x[:, :1])}}

    workload = Workload("told", build_model, load_data, Loss(2), optimizer="sgd")
"""
NEIGHBOUR = """
    import keras

    RATE, SCALE = 0.5, 4.0

    class Doubled(keras.layers.Layer):
        def call(self, x):
            return self.with_itself(x)

        @staticmethod
        def with_itself(x):
            return x + x * RATE
"""
OF_TOLD = {
    "constant of an imported module": ("SCALE = 0.5, 4.0", "SCALE = 0.5, 5.0", ("loss",)),
    "imported constant": ("SCALE = 0.5, 4.0", "SCALE = 0.7, 4.0", ("model", "loss")),
    "static method of an imported class": ("x + x", "x - x", ("model",)),
    "attribute of a loss": ("Loss(2)", "Loss(4)", ("loss",)),
    "default of a parameter": ('activation="relu"', 'activation="tanh"', ("model",)),
    "nothing": ("RATE, SCALE", "# Others.\n    RATE, SCALE", ()),
}
PRINT = """
import sys
from advisor.records.requests import WorkloadReference
from advisor.training.keras_session import open_session
session = open_session(WorkloadReference(sys.argv[1]))
if len(sys.argv) > 2:
    session.reset(4, {}, seed=9)
    session.train(1)
print(session.describe().fingerprint)
"""


def _told_in(folder, neighbour, old="", new=""):
    folder.mkdir()
    for name, text in (("told.py", TOLD), (f"{neighbour}.py", NEIGHBOUR)):
        replaced = text.replace(old, new) if old else text
        (folder / name).write_text(
            textwrap.dedent(replaced.format(neighbour=neighbour) if text is TOLD else replaced)
        )
    return str(folder / "told.py")


def test_another_folder_process_hash_seed_and_training_before_change_nothing(tmp_path):
    printed = set()
    for seed, more in (("1", []), ("2", ["trained"])):
        command = [sys.executable, "-c", PRINT, _told_in(tmp_path / seed, "beside"), *more]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        printed.add(done.stdout.strip())
    assert len(printed) == 1


def _by_value(workload):
    """Return ``workload`` as from a notebook, whose code goes along without its text."""
    module = sys.modules[workload.build_model.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        pickled = cloudpickle.dumps(workload)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    return load_workload(WorkloadReference("told", pickled))


def test_what_the_code_names_elsewhere_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))

    def parts(number, *change):
        source = _told_in(tmp_path / str(number), f"beside_{number}", *change)
        workload = load_workload(WorkloadReference(source))
        found = code_of(workload)
        assert code_of(workload) == found
        sent = replace(workload, loss="mse")  # Keras cannot pickle a loss of the user's
        by_name = load_workload(WorkloadReference("told", cloudpickle.dumps(sent)))
        assert code_of(by_name)["model"] == found["model"]
        assert code_of(_by_value(sent)) == code_of(_by_value(_by_value(sent)))
        return found

    before = parts(0)
    for number, (name, (old, new, expected)) in enumerate(OF_TOLD.items(), 1):
        after = parts(number, old, new)
        assert tuple(part for part in before if before[part] != after[part]) == expected, name


def test_code_that_leads_round_in_a_circle_is_told_once():
    circle = Portraits(_even)
    assert circle.of(_even) == Portraits(_even).of(_even)
    assert [function.__name__ for function in circle.reached] == ["_even", "_odd"]


def _even(number):
    return number == 0 or _odd(number - 1)


def _odd(number):
    return number != 0 and _even(number - 1)


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


def test_the_code_of_a_pipeline_counts_for_the_time_and_that_of_arrays_does_not(open_workload):
    def workload(factor, streams):
        def scaled(x):
            return x / factor, x

        def data():
            x = np.full((8, 1), factor, "float32")
            arrays = (x / factor, x / factor)
            dataset = tf.data.Dataset.from_tensor_slices(x).map(scaled).map(lambda x, y: (x, x))
            return dict.fromkeys(("train", "validation"), dataset if streams else arrays)

        return Workload(
            "piped",
            lambda hp: keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]),
            data,
            "mse",
        )

    printed = {
        key: open_workload(workload(*key)).describe().fingerprint
        for key in ((2.0, True), (4.0, True), (2.0, False), (4.0, False))
    }
    assert printed[2.0, True].changed(printed[4.0, True]) == ("pipeline",)
    assert printed[2.0, True].timing != printed[4.0, True].timing
    assert printed[2.0, True].training == printed[4.0, True].training
    assert printed[2.0, False] == printed[4.0, False]
