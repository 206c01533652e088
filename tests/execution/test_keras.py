"""Real Keras sessions in real children."""

from collections.abc import Callable
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from advisor.errors import OutOfMemoryError
from advisor.execution.local import LocalSessions
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.requests import WorkloadReference
from advisor.records.workload import Workload

ENTRY = "advisor.training.keras_session:open_session"
GIB = 2**30


def _model(units: int) -> Callable[[Hyperparameters], object]:
    def build(hp: Hyperparameters) -> object:
        import keras

        return keras.Sequential([keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)])

    return build


def _random_data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    x = np.random.default_rng(0).normal(size=(4096, 8)).astype("float32")
    return {"train": (x, x[:, :1]), "validation": (x[:64], x[:64, :1])}


def _sessions(units: int, limit_bytes: int) -> LocalSessions:
    workload = Workload("line", _model(units), _random_data, loss="mse", optimizer="sgd")
    reference = WorkloadReference("line", pickled=cloudpickle.dumps(workload))
    return LocalSessions(ENTRY, reference, memory_limit_bytes=limit_bytes)


def test_a_workload_handed_over_as_an_object_trains_in_a_child(tmp_path: Path) -> None:
    session = _sessions(units=16, limit_bytes=4 * GIB).open()
    description = session.describe()
    assert (description.name, description.training_examples, description.parameter_count) == (
        "line",
        4096,
        161,
    )
    session.reset(64, {"learning_rate": 0.05}, seed=0)
    before = session.evaluate("validation").metrics["loss"]
    session.train(20)
    session.save(tmp_path / "checkpoint")
    after = session.evaluate("validation").metrics["loss"]
    session.train(20)
    session.restore(tmp_path / "checkpoint")
    assert session.evaluate("validation").metrics["loss"] == after < before
    session.close()


def test_a_batch_beyond_the_limit_is_out_of_memory() -> None:
    """An example takes 0.8 MB in the wide layer, so that 4096 take 3.3 GB forwards alone."""
    session = _sessions(units=200_000, limit_bytes=2 * GIB).open()
    session.reset(16, {"learning_rate": 1e-6}, seed=0)
    assert session.train(1).steps == 1
    with pytest.raises(OutOfMemoryError, match=r"Memory ran out|out of memory"):
        session.reset(4096, {"learning_rate": 1e-6}, seed=0)
        session.train(1)
    session.close()
