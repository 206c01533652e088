"""Models of a workload: built, compiled, and given fresh initial weights."""

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import keras
import tensorflow as tf
from keras.src.backend.common import global_state

from advisor.errors import WorkloadError
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.search_space import HyperparameterValue
from advisor.records.workload import Workload
from advisor.training.data import Batch
from advisor.training.faults import blaming_the_workload
from advisor.training.losses import LossRecorder

_NAME_COUNTERS = "object_name_uids"


class ReadHyperparameters(Hyperparameters):
    """What a model read while it was built or traced is a constant of it; the rest may change."""

    def fits(self, values: Mapping[str, HyperparameterValue]) -> bool:
        """Return whether every value that was read is the same in ``values``."""
        return all(values[name] == self._values[name] for name in self.names_read)

    def renew(self, values: Mapping[str, HyperparameterValue]) -> None:
        """Take over ``values``, which fit, for whatever is read from now on."""
        self._values = dict(values)


def construct(workload: Workload, hp: Hyperparameters) -> keras.Model:
    """Call ``build_model``, and see to it that a model comes of it."""
    try:
        inspect.signature(workload.build_model).bind(hp)
    except TypeError as error:
        raise WorkloadError(
            f"build_model of {workload.name} must take the hyperparameters as its one argument, as in "
            f"def build_model(hp): … ({error})"
        ) from error
    with blaming_the_workload(f"building the model of {workload.name}"), _names_left_alone():
        model = workload.build_model(hp)
    if not isinstance(model, keras.Model):
        raise WorkloadError(
            f"build_model of {workload.name} returned {type(model).__name__}; return a keras.Model."
        )
    return model


@contextmanager
def _names_left_alone() -> Iterator[None]:
    """Let every model get the same automatic names: they are part of the names of its metrics.

    Keras offers no public way to its counters but one that clears all of its settings.
    """
    counters = global_state.get_global_attribute(_NAME_COUNTERS)
    before = dict(counters or {})
    try:
        yield
    finally:
        global_state.set_global_attribute(_NAME_COUNTERS, defaultdict(int, before))


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
    workload: Workload, hp: Hyperparameters, model: keras.Model, head: Batch
) -> list[tf.Tensor]:
    """Return what ``model.variables`` are at the start of a training, under the seeds just set.

    They are those of a second model built by the same code, which is right for every kind of model.
    """
    fresh = construct(workload, hp)
    if len(fresh.variables) != len(model.variables):
        fresh(keras.utils.unpack_x_y_sample_weight(head)[0], training=False)
    pairs = list(zip(fresh.variables, model.variables, strict=False))
    shared = [old.path for new, old in pairs if new is old and new.trainable]
    if shared:
        raise WorkloadError(
            f"build_model of {workload.name} uses weights that were made outside of it, such as {shared[0]}: "
            "they would keep what earlier trainings left in them. Make all layers inside build_model."
        )
    if len(fresh.variables) != len(model.variables) or any(new.shape != old.shape for new, old in pairs):
        raise WorkloadError(
            f"build_model of {workload.name} returned another model the second time, with the same "
            "hyperparameters. Let its structure depend on the hyperparameters alone."
        )
    return [variable.value.read_value() for variable in fresh.variables]
