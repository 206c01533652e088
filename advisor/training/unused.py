"""Parts of an example that a model never reads."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from advisor.training.data import Batch
from advisor.training.graphs import forget_gradients

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


def unused_features(forward: Callable[[Batch], Any], batch: Batch, paths: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``paths`` below x that nothing depends on: no output and no state of ``forward``.

    ``paths`` are the names of the leaves of ``batch``, which are tensors, in their order. ``forward`` is
    traced, not run. What a loop or a branch is given counts as read.
    """
    leaves: list[list[tf.Tensor]] = []

    def traced(*given: Any) -> Any:
        leaves[:] = [tf.nest.flatten(leaf, expand_composites=True) for leaf in given]
        return forward(keras.tree.pack_sequence_as(batch, given))

    graph = tf.function(traced, autograph=False).get_concrete_function(*keras.tree.flatten(batch)).graph
    forget_gradients(graph)
    read = _operations_read(graph, {})
    named = zip(paths, leaves, strict=True)
    return tuple(path for path, parts in named if path.startswith("x") and not _any_in(parts, read))


def _any_in(tensors: Iterable[tf.Tensor], operations: set[str]) -> bool:
    return any(tensor.op.name in operations for tensor in tensors)


def _operations_read(graph: Any, known: dict[str, set[int]]) -> set[str]:
    """Return the names of all operations that the outputs and the side effects of ``graph`` depend on."""
    waiting = [*(output.op for output in graph.outputs), *graph.control_outputs]
    found: set[str] = set()
    while waiting:
        operation = waiting.pop()
        if operation.name not in found:
            found.add(operation.name)
            waiting += [*operation.control_inputs, *(tensor.op for tensor in _inputs_read(operation, known))]
    return found


def _inputs_read(operation: Any, known: dict[str, set[int]]) -> list[tf.Tensor]:
    """Return the inputs of ``operation`` that matter; a called function may ignore some.

    ``known`` keeps the places of those that matter by the name of the function.
    """
    inputs = list(operation.inputs)
    if operation.type not in _CALLS:
        return inputs
    name = operation.get_attr("f").name
    find = getattr(operation.graph, "_get_function", None)  # Not every version of TensorFlow need have it.
    called = getattr(find and find(name), "graph", None)
    if called is None:
        return inputs
    if name not in known:
        read = _operations_read(called, known)
        known[name] = {place for place, tensor in enumerate(called.inputs) if tensor.op.name in read}
    return [tensor for place, tensor in enumerate(inputs) if place in known[name]]
