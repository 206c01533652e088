"""Digests of everything that a measurement or a curve depends on, the same in every process."""

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from advisor.records.description import Configuration, Fingerprint
from advisor.records.workload import Workload
from advisor.training.data import Split
from advisor.training.optimizers import Values

_PLAIN = (str, int, float, bool, type(None))
_OF_THE_FILE = ("module", "registered_name", "code")  # where a class or function stands, not what it does


def fingerprint(
    workload: Workload,
    splits: Mapping[str, Split],
    model: keras.Model,
    defaults: tuple[Values, Values],
    configuration: Configuration,
    environment: Mapping[str, str],
) -> Fingerprint:
    """Return the digests; ``defaults`` are the values that the model reads, and those of the optimizer."""
    of_model, of_optimizer = defaults
    machine = {name: environment[name] for name in ("device", "cpu_count", "machine")}
    versions = {name: environment[name] for name in ("tensorflow", "keras")}
    return Fingerprint(
        model=_digest(_structure(model), _portrait(workload.build_model), of_model),
        optimizer=_digest(_portrait(workload.optimizer), of_optimizer),
        loss=_digest(_portrait(workload.loss)),
        data_shape=_digest({name: _shapes(split) for name, split in splits.items()}),
        data_content=_digest({name: _content(split) for name, split in splits.items()}),
        target=_digest(str(workload.target), _target_metric(workload)),
        configuration=_digest(str(configuration), machine),
        versions=_digest(versions),
    )


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, default=_portrait)
    return hashlib.sha256(text.encode()).hexdigest()


def _structure(model: keras.Model) -> Any:
    """Return layers, configuration and weights, with layers named by their place and not by a counter."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, keras.Layer)]
    names = {layer.name: f"layer {index}" for index, layer in enumerate(layers)}
    weights = [(tuple(weight.shape), str(weight.dtype), weight.trainable) for weight in model.variables]
    return _renamed([[_portrait(layer) for layer in layers], weights], names)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {str(key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(item, names) for item in value]
    return value


def _portrait(value: Any) -> Any:
    """Return plain data that differs where ``value`` behaves differently; never an address."""
    if isinstance(value, _PLAIN):
        return value
    for kinds, portray in _PORTRAITS.items():
        if isinstance(value, kinds):
            return portray(value)
    return [_portrait(type(value)), _configuration_of(value)]


def _portrait_of_mapping(mapping: Mapping[Any, Any]) -> Any:
    left_out = _OF_THE_FILE if "class_name" in mapping else ()
    return {str(key): _portrait(item) for key, item in mapping.items() if key not in left_out}


def _portrait_of_function(function: Any) -> Any:
    """Return the code, and the plain values that it closes over."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    closed_over = [_portrait(cell) for cell in cells if isinstance(cell, (*_PLAIN, tuple, list))]
    if not _is_users(function):
        return [function.__module__, function.__qualname__, closed_over]
    return [function.__qualname__, _source(function), closed_over]


_PORTRAITS: Mapping[Any, Callable[[Any], Any]] = {
    Mapping: _portrait_of_mapping,
    (list, tuple): lambda values: [_portrait(value) for value in values],
    (set, frozenset): lambda values: sorted(str(_portrait(value)) for value in values),
    partial: lambda call: [_portrait(call.func), _portrait(call.args), _portrait(call.keywords)],
    (FunctionType, MethodType): _portrait_of_function,
    type: lambda kind: [kind.__qualname__, _source(kind) if _is_users(kind) else ""],
    (np.ndarray, np.generic, tf.Tensor, tf.Variable, keras.Variable): lambda array: _digest_of(
        np.asarray(array)
    ),
    # The configuration of a Lambda layer has its code with line numbers and the name of the file.
    keras.layers.Lambda: lambda layer: [_portrait(layer.function), _portrait(layer.arguments)],
}


def _configuration_of(value: Any) -> Any:
    """Return a Keras object's configuration, where it can tell one."""
    try:
        return _portrait(value.get_config())
    except Exception:
        return None


def _source(value: Any) -> str:
    """Return the code of a function or class, independent of comments and layout."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(inspect.getsource(value))))
    except (OSError, TypeError, SyntaxError):
        code = getattr(value, "__code__", None)
        members = vars(value).values() if isinstance(value, type) else ()
        codes = (
            [code] if code else [member.__code__ for member in members if isinstance(member, FunctionType)]
        )
        return "".join(map(_bytecode, codes))


def _bytecode(code: CodeType) -> str:
    constants = [_bytecode(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}"


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_users(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return not module.startswith(("keras.", "tensorflow.", "builtins"))


def _target_metric(workload: Workload) -> Any:
    """Return the definition of the target's metric, if the workload gives it as more than a name."""
    if workload.target is None:
        return None
    named = [metric for metric in keras.tree.flatten(workload.metrics) if not isinstance(metric, str)]
    wanted = workload.target.metric
    names = (getattr(metric, "name", getattr(metric, "__name__", "")) for metric in named)
    return [_portrait(metric) for metric, name in zip(named, names, strict=True) if name == wanted]


def _shapes(split: Split) -> Any:
    first = keras.tree.flatten(split.head(1))
    parts = [(path, leaf.shape[1:], str(leaf.dtype)) for path, leaf in zip(split.paths, first, strict=True)]
    return [split.examples, type(split).__name__, parts]


def _content(split: Split) -> Any:
    """Return digests of all bytes of arrays, and of the first examples of a dataset."""
    return [split.examples, [_digest_of(leaf) for leaf in keras.tree.flatten(split.sample())]]


def _digest_of(array: np.ndarray[Any, Any]) -> str:
    if array.dtype == object:
        return hashlib.sha256("\x1f".join(map(str, array.flat)).encode()).hexdigest()
    content: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.sha256(content).hexdigest()
