"""Digests of everything that a measurement or a curve depends on, the same in every process."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import keras

from advisor.records.description import Configuration, Fingerprint
from advisor.records.workload import Workload
from advisor.training.data import DatasetSplit, Split
from advisor.training.portraits import Portraits, digest_of

Parts = Mapping[str, Any]


def code_of(workload: Workload) -> Parts:
    """Return digests of model, optimizer, loss, data function and the target's metric, with all they name.

    To be taken before anything of it has run, since code can change what it names.
    """
    own = {"model": workload.build_model, "optimizer": workload.optimizer, "loss": workload.loss}
    values = {**own, "target": _target_metric(workload), "pipeline": workload.data}
    return {name: _digest(Portraits(*own.values()).of(value)) for name, value in values.items()}


def fingerprint(
    workload: Workload,
    splits: Mapping[str, Split],
    model: keras.Model,
    parts: Parts,
    configuration: Configuration,
    environment: Mapping[str, str],
) -> Fingerprint:
    """Return the digests.

    ``parts`` are what model, optimizer, loss and target depend on besides: code, and the values that it
    reads.
    """
    machine = {name: environment[name] for name in ("device", "cpu_count", "machine")}
    versions = {name: environment[name] for name in ("tensorflow", "keras")}
    streams = isinstance(splits["train"], DatasetSplit)
    return Fingerprint(
        model=_digest(_structure(model), parts["model"]),
        optimizer=_digest(parts["optimizer"]),
        loss=_digest(parts["loss"]),
        data_shape=_digest({name: _shapes(split) for name, split in splits.items()}),
        data_content=_digest({name: _content(split) for name, split in splits.items()}),
        target=_digest(str(workload.target), parts["target"]),
        configuration=_digest(str(configuration), machine),
        versions=_digest(versions),
        pipeline=_digest(parts["pipeline"]) if streams else "",
    )


def _digest(*parts: Any) -> str:
    text = json.dumps(Portraits(follows=False).of(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _structure(model: keras.Model) -> Any:
    """Return layers, configuration and weights, with layers named by their place and not by a counter."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, keras.Layer)]
    names = {layer.name: f"layer {index}" for index, layer in enumerate(layers)}
    weights = [(tuple(weight.shape), str(weight.dtype), weight.trainable) for weight in model.variables]
    return _renamed([Portraits(follows=False).of(layers), weights], names)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {str(key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(item, names) for item in value]
    return value


def _target_metric(workload: Workload) -> Any:
    """Return the definition of the target's metric, if the workload gives it as more than a name."""
    if workload.target is None:
        return None
    named = [metric for metric in keras.tree.flatten(workload.metrics) if not isinstance(metric, str)]
    names = (getattr(metric, "name", getattr(metric, "__name__", "")) for metric in named)
    return [metric for metric, name in zip(named, names, strict=True) if name == workload.target.metric]


def _shapes(split: Split) -> Any:
    first = keras.tree.flatten(split.head(1))
    parts = [(path, leaf.shape[1:], str(leaf.dtype)) for path, leaf in zip(split.paths, first, strict=True)]
    return [split.examples, type(split).__name__, parts]


def _content(split: Split) -> Any:
    """Return digests of all bytes of arrays, and of the first examples of a dataset."""
    return [split.examples, [digest_of(leaf) for leaf in keras.tree.flatten(split.sample())]]
