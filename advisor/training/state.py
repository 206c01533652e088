"""Everything that changes in training, so that it can start anew, be kept aside, saved and put back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from advisor.errors import SessionError
from advisor.training.graphs import variables_of

_SEED_STATE = "seed_generator_state"


class TrainingState:
    """Weights and random states of a model, its optimizer's variables, and what else its programs use."""

    def __init__(self, model: keras.Model) -> None:
        self._model = model
        self._optimizer = list(model.optimizer.variables)
        self._optimizer_start = [_start_of(variable) for variable in self._optimizer]
        self._others: list[tf.Variable] = []
        self._others_start: list[tf.Tensor] = []
        self._trained_others: list[tf.Variable] = []
        listed = (*model.variables, *self._optimizer, *model.metrics_variables)
        self._listed = {id(variable.value) for variable in listed}

    @property
    def size_bytes(self) -> int:
        """Memory of all variables."""
        return sum(variable.dtype.size * variable.shape.num_elements() for variable in self._all())

    def note(self, graph: tf.Graph, but: Sequence[tf.Variable] = ()) -> None:
        """Take in variables that a traced graph uses and Keras does not list, such as a global seed."""
        for variable in variables_of(graph):
            if id(variable) not in self._listed and not _holds((*but, *self._others), variable):
                self._others.append(variable)
                self._others_start.append(variable.read_value())

    def note_training(self, graph: tf.Graph, but: Sequence[tf.Variable]) -> None:
        """Take in variables of a step loop, except its own, as part of what a checkpoint holds."""
        self.note(graph, but)
        self._trained_others += [
            variable
            for variable in variables_of(graph)
            if _holds(self._others, variable) and not _holds(self._trained_others, variable)
        ]

    def start(self, weights: Sequence[tf.Tensor], seed: int) -> None:
        """Take ``weights`` as those of ``model.variables``; set everything else back to its start."""
        for variable, value in zip(self._model.variables, weights, strict=True):
            variable.assign(value)
        for variable, value in zip(self._optimizer, self._optimizer_start, strict=True):
            variable.assign(tf.zeros(variable.shape, variable.value.dtype) if value is None else value)
        for variable, value in zip(self._others, self._others_start, strict=True):
            is_seed = _SEED_STATE in variable.name
            variable.assign(tf.constant([seed, 0], variable.dtype) if is_seed else value)
        self._model.reset_metrics()

    def has_weights(self, weights: Sequence[tf.Tensor]) -> bool:
        """Return whether ``model.variables`` are exactly ``weights``."""
        pairs = zip(self._model.variables, weights, strict=True)
        return all(bool(tf.reduce_all(variable.value == value)) for variable, value in pairs)

    def untrained(self) -> list[tuple[Any, tf.Tensor]]:
        """Return what an evaluation might change, with its values: random states, moving averages."""
        variables = [variable.value for variable in self._model.variables if not variable.trainable]
        return [(variable, variable.read_value()) for variable in (*variables, *self._others)]

    def arrays(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return a copy of all values by a stable name."""
        return {f"variable/{index}": variable.numpy() for index, variable in enumerate(self._all())}

    def load(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Put back what :meth:`arrays` gave; raises SessionError where it is of another model."""
        variables = self._all()
        values = [arrays[name] for name in arrays if name.startswith("variable/")]
        wanted = [tuple(variable.shape) for variable in variables]
        if [value.shape for value in values] != wanted:
            raise SessionError("The checkpoint is of another model or optimizer than the one under training.")
        for variable, value in zip(variables, values, strict=True):
            # numpy keeps types that it does not know, such as bfloat16, as plain bytes.
            known = value.view(variable.dtype.as_numpy_dtype) if value.dtype.kind == "V" else value
            variable.assign(known)

    def _all(self) -> list[tf.Variable]:
        listed = (*self._model.variables, *self._optimizer)
        return [*(variable.value for variable in listed), *self._trained_others]


def _holds(variables: Iterable[tf.Variable], variable: tf.Variable) -> bool:
    return any(other is variable for other in variables)


def _start_of(variable: keras.Variable) -> tf.Tensor | None:
    """Return the present value, or None for zeros, which need not be kept."""
    value = variable.value.read_value()
    return value if bool(tf.reduce_any(tf.cast(value, tf.bool))) else None
