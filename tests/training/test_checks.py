"""A faulty workload is refused in a sentence that says what was found and what to do."""

from dataclasses import replace
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Categorical, Float, Int, Target, Workload
from advisor.errors import AdvisorError, OutOfMemoryError, SessionError, WorkloadError
from tests.training import zoo

X, Y = np.ones((12, 4), "float32"), np.ones((12, 1), "float32")
LABELS = np.arange(12, dtype="int32") % 3
GOOD = {"train": (X, Y), "validation": (X, Y)}


def classifier(hp, outputs=3, activation=None):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(outputs, activation=activation)])


def one_output(hp):
    return classifier(hp, 1)


def three_probabilities(hp):
    return classifier(hp, 3, "softmax")


def one_probability(hp):
    return classifier(hp, 1, "sigmoid")


def faulty(data=None, build=one_output, loss="mse", **options):
    def splits():
        given = {**GOOD, **(data or {})}
        return {name: value() if isinstance(value, partial) else value for name, value in given.items()}

    return Workload("faulty", build, data if callable(data) else splits, loss, **options)


def with_rows(array, *rows, value):
    changed = array.astype("float32")
    changed[list(rows)] = value
    return changed


def endless(*parts):
    return tf.data.Dataset.from_tensor_slices(parts).repeat()


def batched(*parts):
    return tf.data.Dataset.from_tensor_slices(parts).batch(4)


def as_dataset(*parts):
    """Return a split that becomes a dataset when the data function is called."""
    return partial(lambda *parts: tf.data.Dataset.from_tensor_slices(parts), *parts)


def raises(*_):
    raise RuntimeError("the disk has gone")


def variable_length():
    return tf.data.Dataset.from_generator(
        lambda: ((np.ones(length, "float32"), 1.0) for length in (4, 5)),
        output_signature=(tf.TensorSpec([None]), tf.TensorSpec([])),
    )


def frozen(hp):
    model = classifier(hp, 1)
    model.trainable = False
    return model


SPARSE = {"train": (X, LABELS), "validation": (X, LABELS)}
CROSSENTROPY = "sparse_categorical_crossentropy"
Loss = keras.losses.SparseCategoricalCrossentropy

FAULTS = {
    # data
    "no dict": (faulty(lambda: (X, Y)), "returned tuple; return a dict with 'train' and 'validation'"),
    "data raises": (
        faulty(raises),
        r"Loading the data of faulty failed \(test_checks.py:\d+\).*disk has gone",
    ),
    "no validation": (
        faulty(lambda: {"train": (X, Y), "val": (X, Y)}),
        "no 'validation' split, only 'train', 'val'",
    ),
    "a bare array": (faulty({"train": X}), "The train split is of type ndarray. Give .x, y."),
    "no arrays": (faulty({"train": ([[1.0, 2.0], [3.0]], Y)}), "train split holds a float that is no array"),
    "other lengths": (faulty({"train": (X, Y[:7])}), "train split differ in length: x has 12, y has 7"),
    "empty": (faulty({"validation": (X[:0], Y[:0])}), "The validation split is empty"),
    "NaN": (
        faulty({"train": (with_rows(X, 3, 5, value=np.nan), Y)}),
        r"train split has NaN in x, in 2 of 12 rows \(first in row 3\)",
    ),
    "infinite": (
        faulty({"validation": (X, with_rows(Y, 11, value=-np.inf))}),
        r"validation split has infinite values in y, in 1 of 12 rows",
    ),
    "NaN in a dataset": (
        faulty({"train": as_dataset(with_rows(X, 0, value=np.nan), Y)}),
        "train split has NaN in x, in 1 of the first 12 rows",
    ),
    "batched": (
        faulty({"train": partial(batched, X, Y)}),
        r"train dataset is already batched: its elements have x of shape \(4, 4\).*Remove batch\(\)",
    ),
    "endless": (
        faulty({"validation": partial(endless, X, Y)}),
        "validation dataset never ends. Remove repeat",
    ),
    "too many parts": (faulty({"train": as_dataset(X, Y, Y, Y)}), "has 4 parts; give .x, y."),
    "ragged": (
        faulty({"train": partial(variable_length)}),
        "Evaluating the model of faulty.*to have value 4, but received input with shape .2, 5.",
    ),
    "no dataset": (faulty({"train": lambda context: 3}), "train split is of type int"),
    "other width": (
        faulty({"train": (X[:, :3], Y)}),
        r"takes examples of shape \(4,\), and x of the train.*\(3,\)",
    ),
    # labels and losses
    "label too high": (
        faulty({"train": (X, LABELS + 1), "validation": (X, LABELS)}, classifier, Loss(from_logits=True)),
        "of 3 outputs needs labels 0 to 2, but y of the train split holds 3 in row 2 .4 of 12",
    ),
    "label below 0": (
        faulty({**SPARSE, "validation": (X, LABELS - 1)}, three_probabilities, CROSSENTROPY),
        "y of the validation split holds -1 in row 0",
    ),
    "label in a dataset": (
        faulty({**SPARSE, "validation": as_dataset(X, LABELS + 5)}, three_probabilities, CROSSENTROPY),
        "y of the validation split holds 5",
    ),
    "no whole label": (
        faulty({"train": (X, LABELS + 0.5), "validation": (X, LABELS)}, three_probabilities, CROSSENTROPY),
        "holds 0.5 in row 0",
    ),
    "not binary": (
        faulty({"train": (X, 2 * Y), "validation": (X, Y)}, one_probability, "binary_crossentropy"),
        "binary_crossentropy needs labels from 0 to 1, but y of the train split holds 2.0",
    ),
    "no probabilities": (
        faulty({"train": (9 * X, LABELS), "validation": (X, LABELS)}, classifier, CROSSENTROPY),
        "expects probabilities, but the model's outputs range from .*softmax.*from_logits=True",
    ),
    "one against three": (
        faulty(SPARSE, classifier, "mse"),
        r"loss mse does not fit labels of shape \(2,\) and outputs of shape \(2, 3\).*Incompatible shapes",
    ),
    "one against two": (  # which would be stretched silently for two examples
        faulty(SPARSE, lambda hp: classifier(hp, 2), "mse"),
        r"mean_squared_error compares.*one by one.*labels of shape \(\) and outputs of shape \(2,\)",
    ),
    "one-hot": (
        faulty({"train": (X, np.eye(4)[LABELS]), "validation": (X, np.eye(4)[LABELS])}, classifier, Loss()),
        r"does not fit labels of shape \(2, 4\) and outputs of shape \(2, 3\)",
    ),
    "unknown loss": (faulty(loss="mean_squared_eror"), "Evaluating the model.*mean_squared_eror"),
    "no loss": (faulty(loss=None), "nothing to minimize.*names no loss, and Sequential neither"),
    # model
    "no hyperparameters": (
        faulty(build=lambda: one_output(None)),
        "must take the hyperparameters as its one argument",
    ),
    "no model": (faulty(build=lambda hp: None), "returned NoneType; return a keras.Model"),
    "model raises": (
        faulty(build=raises),
        r"Building the model of faulty failed \(test_checks.py:\d+\). RuntimeError",
    ),
    "unknown name": (
        faulty(build=lambda hp: classifier(hp, hp.widht)),
        "no hyperparameter 'widht'; there are .*learning_rate.*search_space",
    ),
    "unknown key": (faulty(build=lambda hp: classifier(hp, hp["widht"])), "no hyperparameter 'widht'"),
    "nothing to train": (faulty(build=frozen), "no trainable weights"),
    # the rest
    "no such metric": (
        faulty(target=Target("accuracy", at_least=0.9), metrics=["mae"]),
        "target is on 'accuracy', which the model does not report. It reports loss, mae",
    ),
    "unknown optimizer": (
        faulty(optimizer="rmsprop"),
        "no optimizer 'rmsprop'. Use sgd, nesterov, adam, nadam, adamw",
    ),
    "optimizer raises": (faulty(optimizer=raises), r"Building the optimizer failed \(test_checks.py:\d+\)"),
    "no optimizer": (
        faulty(optimizer=lambda hp: "adam"),
        "optimizer function returned str; return a Keras optimizer",
    ),
    "fields": (
        Workload("fields", 3, None, target=0.9, metrics="accuracy"),
        "build_model must be.*data must be.*target must be.*metrics must be",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told(fault, open_workload):
    workload, message = FAULTS[fault]
    with pytest.raises(WorkloadError, match=message) as raised:
        open_workload(workload).describe()
    told = str(raised.value)
    assert len(told) < 700
    assert "\n" not in told
    assert "Traceback" not in told


FINE = {
    "labels with one more dimension": faulty(
        {"train": (X, LABELS[:, None]), "validation": (X, LABELS[:, None])}, three_probabilities, CROSSENTROPY
    ),
    "outputs with one more dimension": faulty({"train": (X, Y[:, 0]), "validation": (X, Y[:, 0])}),
    "an ignored class": faulty(
        {"train": (X, LABELS - 1), "validation": (X, LABELS - 1)},
        classifier,
        Loss(from_logits=True, ignore_class=-1),
    ),
    "a third split": faulty({"test": (X[:1], Y[:1])}),
    "no weights": faulty({"train": (X, Y, None)}),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_fine_is_not_refused(case, open_workload):
    session = open_workload(FINE[case])
    session.reset(4, {}, 0)
    assert np.isfinite(session.train(2).training_loss)
    assert np.isfinite(session.evaluate("validation").metrics["loss"])


# Faults of one batch size or of one trial


class Picky(keras.Model):
    """Fails in training alone, in the way that its hyperparameter names, at batch sizes above 4."""

    def __init__(self, hp):
        super().__init__()
        self.kind, self.dense = hp.kind, keras.layers.Dense(1)

    def call(self, x, training=False):
        if training and x.shape[0] > 4:
            if self.kind == "raises":
                raise ValueError("out of memory, says the model, which is no reason to believe it")
            x = tf.py_function(self.fail, [x], tf.float32)
            x.set_shape([8, 4])
        return self.dense(x)

    def fail(self, x):
        raise {
            "memory": MemoryError("no room for 8"),
            "exhausted": tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"),
            "cudnn": tf.errors.UnknownError(None, None, "CUDNN_STATUS_ALLOC_FAILED"),
            "index": tf.errors.InvalidArgumentError(None, None, "indices[3] = 9 is not in [0, 9)"),
        }[self.kind]


KINDS = Categorical(["fine", "raises", "memory", "exhausted", "cudnn", "index"])


@pytest.fixture
def picky(open_workload):
    return open_workload(Workload("picky", Picky, lambda: GOOD, "mse", search_space={"kind": KINDS}))


@pytest.mark.parametrize("kind", ["exhausted", "cudnn", "memory"])
def test_memory_that_runs_out_in_training_is_told_as_such(kind, picky):
    picky.reset(8, {"kind": kind}, 0)
    with pytest.raises(OutOfMemoryError, match="Memory ran out while training at batch size 8"):
        picky.train(1)


def test_an_ordinary_error_is_never_memory_and_costs_one_batch_size(picky):
    with pytest.raises(
        SessionError, match=r"failed \(test_checks.py:\d+\). ValueError: out of memory, says"
    ) as raised:
        picky.reset(8, {"kind": "raises"}, 0)
    assert not isinstance(raised.value, OutOfMemoryError)
    assert picky.reset(4, {"kind": "raises"}, 0).rebuilt
    assert picky.train(1).steps == 1


def test_an_error_of_an_operation_is_told_without_its_graph(picky):
    picky.reset(8, {"kind": "index"}, 0)
    with pytest.raises(SessionError, match=r"indices\[3\] = 9 is not in \[0, 9\)") as raised:
        picky.train(1)
    assert len(str(raised.value)) < 600
    assert "node" not in str(raised.value)


def test_no_training_is_active_after_a_failed_reset(picky):
    picky.reset(4, {}, 0)
    with pytest.raises(AdvisorError):
        picky.reset(4, {"unknown": 1}, 0)
    with pytest.raises(SessionError, match="call reset first"):
        picky.train(1)


# Names of hyperparameters. A name that stands anywhere in the module counts, so some are in another one.


def read_under_a_condition(hp):
    rates = [hp.rate] if hp.extra else []
    rates += [hp[f"rate_{layer}"] for layer in range(hp.layers)]
    dropouts = [keras.layers.Dropout(rate) for rate in rates]
    return keras.Sequential([keras.Input((4,)), *dropouts, keras.layers.Dense(1)])


MISSPELT = {
    "fixed": ("momentun", {"fixed": {"momentun": 0.5}}, "nesterov", "momentum"),
    "searched": ("learning_rat", {"search_space": {"learning_rat": Float(0.1, 1.0)}}, "sgd", "learning_rate"),
    "of another optimizer": ("momentum", {"fixed": {"momentum": 0.5}}, "adam", None),
    "of a function": ("beta_2", {"fixed": {"beta_2": 0.5}}, zoo.own_sgd, "beta_1"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_name_of_a_study_that_nothing_reads_is_refused(open_workload, name):
    unread, reference, optimizer, closest = MISSPELT[name]
    workload = replace(zoo.BY_NAME["weighted"], name="faulty", optimizer=optimizer)
    session = open_workload(workload, **reference)
    with pytest.raises(WorkloadError, match=f"'faulty' reads the hyperparameter '{unread}'") as caught:
        session.describe()
    assert ("did you mean" in str(caught.value)) == (closest is not None)
    assert (closest or "beta_1, beta_2, epsilon, learning_rate, weight_decay") in str(caught.value)


def test_a_name_of_the_workload_that_nothing_reads_is_refused(open_workload):
    space = {"factor": Float(0.5, 1.0), "factors": Float(0.5, 1.0)}
    workload = replace(zoo.BY_NAME["weighted"], build_model=zoo.ReadsInCall, search_space=space)
    session = open_workload(workload)
    with pytest.raises(WorkloadError, match=r"'factors' \(did you mean 'factor'\?\).*valid are .*, factor,"):
        session.describe()


def test_names_that_are_read_late_or_under_a_condition_are_accepted(open_workload):
    space = {"extra": Categorical((False, True)), "layers": Int(0, 2, default=0), "rate": Float(0.0, 0.5)}
    space |= {f"rate_{layer}": Float(0.0, 0.5) for layer in range(2)}
    session = open_workload(
        faulty(build=read_under_a_condition, search_space=space), fixed={"rate": 0.1, "rate_1": 0.2}
    )
    assert set(session.describe().search_space) == {"extra", "layers", "rate_0"}
    late = faulty(build=zoo.ReadsInCall, search_space={"factor": Float(0.5, 1.0)})
    assert set(open_workload(late).describe().search_space) == {"factor"}
