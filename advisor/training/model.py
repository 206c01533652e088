"""Models of a workload: built, compiled, and given fresh initial weights."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from advisor.errors import WorkloadError
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.search_space import HyperparameterValue
from advisor.records.workload import Workload
from advisor.training.data import Batch
from advisor.training.faults import blaming_the_workload
from advisor.training.losses import LossRecorder


class ReadHyperparameters(Hyperparameters):
    """What a model read while it was built or traced is a constant of it; the rest may change."""

    def fits(self, values: Mapping[str, HyperparameterValue]) -> bool:
        """Return whether every value that was read is the same in ``values``."""
        return all(values[name] == self._values[name] for name in self.names_read)

    def renew(self, values: Mapping[str, HyperparameterValue]) -> None:
        """Take over ``values``, which fit, for whatever is read from now on."""
        self._values = dict(values)


def construct(workload: Workload, hp: Hyperparameters, seed: int) -> keras.Model:
    """Call ``build_model``, with every random choice in it decided by ``seed``."""
    try:
        inspect.signature(workload.build_model).bind(hp)
    except TypeError as error:
        raise WorkloadError(
            f"build_model of {workload.name} must take the hyperparameters as its one argument, as in "
            f"def build_model(hp): … ({error})"
        ) from error
    keras.utils.set_random_seed(seed)
    with blaming_the_workload(f"building the model of {workload.name}"):
        model = workload.build_model(hp)
    if not isinstance(model, keras.Model):
        raise WorkloadError(
            f"build_model of {workload.name} returned {type(model).__name__}; return a keras.Model."
        )
    return model


def compile_model(
    model: keras.Model, workload: Workload, optimizer: keras.optimizers.Optimizer, recorder: LossRecorder
) -> None:
    """Compile ``model`` with the workload's loss and metrics; ``recorder`` sees every loss computed."""
    with blaming_the_workload(f"compiling the model of {workload.name}"):
        model.compile(
            optimizer=optimizer,
            loss=recorder.wrap(workload.loss),
            metrics=list(workload.metrics) if isinstance(workload.metrics, tuple) else workload.metrics,
            jit_compile=False,
        )


def initial_values(
    workload: Workload, hp: Hyperparameters, seed: int, model: keras.Model, head: Batch
) -> Any:
    """Return what ``model.variables`` are at the start of a training with ``seed``.

    They are those of a second model built by the same code, which is right for every kind of model.
    """
    fresh = construct(workload, hp, seed)
    if len(fresh.variables) != len(model.variables):
        fresh(keras.utils.unpack_x_y_sample_weight(head)[0], training=False)
    shapes = [tuple(variable.shape) for variable in fresh.variables]
    if shapes != [tuple(variable.shape) for variable in model.variables]:
        raise WorkloadError(
            f"build_model of {workload.name} returned another model the second time, with the same "
            "hyperparameters. Let its structure depend on the hyperparameters alone."
        )
    return [variable.value for variable in fresh.variables]
