"""What a session says of itself and its machine, and parts of its work that no other test looks at."""

import os
import platform
from dataclasses import replace
from time import process_time

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Workload
from advisor.errors import WorkloadError
from advisor.records.description import Configuration
from advisor.records.memory_faults import is_out_of_memory
from advisor.records.requests import SessionOptions
from advisor.training.evaluation import evaluation_batch_size
from advisor.training.faults import brief
from tests.training.zoo import BY_NAME


def test_the_digits_are_described(digits):
    description = digits.describe()
    assert description.name == "digits"
    assert description.optimizer == "nesterov"
    assert description.optimizer_hyperparameters == {
        "learning_rate": 0.01,
        "momentum": 0.9,
        "weight_decay": 0.0,
    }
    assert description.examples == {"train": 1397, "validation": 400}
    assert description.parameter_count == 64 * 64 + 64 + 64 * 10 + 10
    assert description.metrics == ("loss", "accuracy")
    assert description.initial_metrics["loss"] == pytest.approx(np.log(10), abs=0.4)  # that of a guess
    assert description.configuration == Configuration(1, 1, "cpu", "float32", False)


def test_the_machine_is_described(digits):
    environment = digits.describe().environment
    assert environment["python"] == platform.python_version()
    assert environment["tensorflow"] == tf.__version__
    assert environment["keras"] == keras.__version__
    assert environment["hostname"] == platform.node()
    assert int(environment["cpu_count"]) >= 1
    assert environment["device"]
    assert environment["machine"] == platform.machine()


def test_peak_memory_is_that_of_the_process(digits):
    with open("/proc/self/statm") as statm:  # noqa: PTH123 - not a file of anyone's
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert resident * 0.9 <= digits.memory().peak_bytes < 100 * resident


def test_a_known_batch_size_starts_within_a_tenth_of_a_second(digits):
    starts = []
    for seed in range(7):
        starts.append(seconds_until_trained(digits, seed))
    assert min(starts[1:]) < 0.1


def seconds_until_trained(session, seed):
    start = process_time()  # what other programs on the machine take does not count
    session.reset(32, {"learning_rate": 0.01 * (1 + seed), "momentum": 0.8}, seed)
    session.train(1)
    return process_time() - start


def test_batches_for_evaluation_are_as_large_as_in_training_and_mostly_alike():
    assert {evaluation_batch_size(260, size) for size in (1, 8, 64, 1024)} == {1024}
    assert evaluation_batch_size(260, 3000) == 3000
    assert evaluation_batch_size(600_000, 8) == 16  # photographs
    assert evaluation_batch_size(100_000_000, 8) == 8  # a language model's outputs
    assert evaluation_batch_size(0, 8) == 1024


def test_mixed_precision_trains_and_is_kept(open_workload, tmp_path):
    def build(hp):
        policy = keras.DTypePolicy("mixed_float16")
        layers = [
            keras.layers.Dense(8, activation="tanh", dtype=policy),
            keras.layers.Dense(1, dtype="float32"),
        ]
        model = keras.Sequential([keras.Input((5,)), *layers])
        model.dtype_policy = policy
        return model

    session = open_workload(replace(BY_NAME["normalized"], build_model=build))
    assert session.describe().configuration.precision == "mixed_float16"
    session.reset(8, {"learning_rate": 0.05}, 0)
    before = session.evaluate("train").metrics["loss"]
    session.train(60)
    session.save(tmp_path / "kept")
    after = session.evaluate("train").metrics["loss"]
    assert after < 0.9 * before
    expected = session.train(3).training_loss
    session.reset(8, {"learning_rate": 0.05}, 1)
    session.restore(tmp_path / "kept")
    assert session.train(3).training_loss == expected


class Silent(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        return {"accuracy": 1.0}


def test_a_step_that_reports_no_loss_is_told(open_workload):
    data = BY_NAME["normalized"].data
    session = open_workload(Workload("silent", lambda hp: Silent(), data, "mse"))
    with pytest.raises(WorkloadError, match="train_step of Silent reports accuracy, but no loss"):
        session.reset(8, {}, 0)


def test_metrics_of_several_values_are_told_one_by_one(open_workload):
    recalls = keras.metrics.F1Score(name="f1")  # one for each class
    base = BY_NAME["classes"]
    one_hot = {name: (x, np.eye(3, dtype="float32")[y]) for name, (x, y) in base.data().items()}
    session = open_workload(
        replace(base, data=lambda: one_hot, loss="categorical_crossentropy", metrics=[recalls])
    )
    assert session.describe().metrics == ("loss", "f1_0", "f1_1", "f1_2")


MEMORY = [
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((10**12,), np.dtype("float64")),
    tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[9,9]"),
    tf.errors.InternalError(None, None, "Dst tensor is not initialized."),
    tf.errors.InternalError(None, None, "Failed to allocate: CUDA_ERROR_OUT_OF_MEMORY"),
    tf.errors.UnknownError(None, None, "CUDNN_STATUS_ALLOC_FAILED"),
    tf.errors.NotFoundError(None, None, "No algorithm worked!"),
    RuntimeError("std::bad_alloc"),
    OSError("[Errno 12] Cannot allocate memory"),
]
OTHER = [
    ValueError("OOM when allocating tensor: RESOURCE_EXHAUSTED"),
    KeyError("MemoryError"),
    tf.errors.InvalidArgumentError(None, None, "Incompatible shapes: [8] vs. [9]"),
    tf.errors.ResourceExhaustedError(None, None, "/data/x; No space left on device"),
    RuntimeError("the model is out of sorts"),
]


@pytest.mark.parametrize("error", MEMORY, ids=repr)
def test_memory_that_runs_out_is_recognised(error):
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_errors_are_not_taken_for_it(error):
    assert not is_out_of_memory(error)


def test_messages_are_told_without_stack_and_graph():
    error = tf.errors.InvalidArgumentError(
        None,
        None,
        "Graph execution error:\n\nDetected at node MatMul defined at (most recent call last):\n"
        '  File "model.py", line 3, in call\n\nMatrix size-incompatible: In[0]: [1,2]\n'
        "\t [[{{node MatMul}}]] [Op:__f_1]",
    )
    assert brief(error) == "InvalidArgumentError: Matrix size-incompatible: In[0]: [1,2]"
    assert brief(ValueError("")) == "ValueError: no message"
    assert brief(KeyError("width")) == "KeyError: width"
    assert len(brief(ValueError("x" * 10_000))) < 500
    assert brief(ValueError("one\ntwo")) == "ValueError: one two"


def test_mixed_precision_trains_as_float32_does_and_ends_with_its_session(open_workload):
    losses = {}
    for mixed in (True, False):
        options = SessionOptions(mixed_precision=mixed)
        session = open_workload(BY_NAME["classes"], options=options)
        precision = session.describe().configuration.precision
        assert precision == ("mixed_bfloat16" if mixed else "float32")
        session.reset(16, {"learning_rate": 0.1}, 3)
        losses[mixed] = session.train(20).training_loss
        assert {weight.dtype for weight in session._active.model.trainable_variables} == {"float32"}
    assert np.isfinite(losses[True])
    assert losses[True] == pytest.approx(losses[False], rel=0.02)
    assert losses[True] != losses[False]
