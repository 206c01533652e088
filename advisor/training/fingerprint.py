"""Digests of everything that a measurement or a curve depends on, the same in every process."""

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Mapping
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
        target=_digest(str(workload.target), _target_metric(workload, model)),
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
    if isinstance(value, Mapping):
        return {str(key): _portrait(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_portrait(item) for item in value]
        return items if isinstance(value, list | tuple) else sorted(map(str, items))
    if isinstance(value, partial):
        return [_portrait(value.func), _portrait(value.args), _portrait(value.keywords)]
    if isinstance(value, FunctionType | MethodType):
        return _portrait_of_function(value)
    if isinstance(value, type):
        return [value.__qualname__, _source(value) if _is_users(value) else ""]
    if isinstance(value, np.ndarray | np.generic | tf.Tensor | keras.Variable):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return [_portrait(type(value)), _configuration_of(value)]


def _portrait_of_function(function: Any) -> Any:
    """Return the code, and the plain values that it closes over."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    closed_over = [_portrait(cell) for cell in cells if isinstance(cell, (*_PLAIN, tuple, list))]
    if not _is_users(function):
        return [function.__module__, function.__qualname__, closed_over]
    return [function.__qualname__, _source(function), closed_over]


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


def _target_metric(workload: Workload, model: keras.Model) -> Any:
    """Return the definition of the target's metric, if the workload gives it as more than a name."""
    if workload.target is None:
        return None
    named = [metric for metric in keras.tree.flatten(list(workload.metrics)) if not isinstance(metric, str)]
    wanted = workload.target.metric
    names = (getattr(metric, "name", getattr(metric, "__name__", "")) for metric in named)
    return [_portrait(metric) for metric, name in zip(named, names, strict=True) if name == wanted]


def _shapes(split: Split) -> Any:
    first = keras.tree.flatten(split.head(1))
    parts = [(path, leaf.shape[1:], str(leaf.dtype)) for path, leaf in zip(split.paths, first, strict=True)]
    return [split.examples, type(split).__name__, parts]


def _content(split: Split) -> str:
    """Return a digest of all bytes of arrays, and of the first examples of a dataset."""
    digest = hashlib.sha256(str(split.examples).encode())
    for leaf in keras.tree.flatten(split.sample()):
        digest.update(_bytes(leaf))
    return digest.hexdigest()


def _bytes(leaf: Any) -> Any:
    if leaf.dtype == object:
        return "\x1f".join(map(str, leaf.flat)).encode()
    return np.ascontiguousarray(leaf).view(np.uint8)
