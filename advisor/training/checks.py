"""Faults of data and loss that would otherwise show as a puzzling error, or as a wrong result."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from typing import Any

import keras
import numpy as np

from advisor.errors import WorkloadError
from advisor.records.target import Target
from advisor.records.workload import Workload
from advisor.training.data import ArraySplit, Batch, DatasetSplit, Split
from advisor.training.losses import LossPart
from advisor.training.portraits import is_spoken_of, words_of_workload

_SPARSE = "sparse_categorical_crossentropy"
_BINARY = ("binary_crossentropy", "binary_focal_crossentropy")
_PROBABILITIES = (_SPARSE, "categorical_crossentropy", "categorical_focal_crossentropy", *_BINARY)
_ELEMENTWISE = (
    *("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "poisson", "huber"),
    *("mean_squared_logarithmic_error", "log_cosh", "kl_divergence", "hinge", "squared_hinge"),
    *("categorical_hinge", "cosine_similarity", *_PROBABILITIES[1:]),
)
_TOLERANCE = 1e-4
_Column = np.ndarray[Any, Any]


def check_splits(splits: Mapping[str, Split]) -> None:
    """Raise WorkloadError for an empty split, or for values that are not finite."""
    for split in splits.values():
        if split.examples == 0:
            raise WorkloadError(f"The {split.name} split is empty; it needs at least one example.")
    for split in splits.values():
        for path, column in zip(split.paths, keras.tree.flatten(split.sample()), strict=True):
            _check_finite(split, path, column)


def check_inputs(model: keras.Model, splits: Mapping[str, Split]) -> None:
    """Raise WorkloadError where a model with one declared input cannot take what the splits hold as x."""
    inputs = keras.tree.flatten(getattr(model, "inputs", None) or [])
    for split in splits.values():
        x = keras.tree.flatten(split.head(1)[0])
        if len(inputs) != 1 or len(x) != 1:
            continue
        expected, found = tuple(inputs[0].shape[1:]), tuple(x[0].shape[1:])
        if len(found) == len(expected) + 1 and isinstance(split, DatasetSplit):
            raise WorkloadError(
                f"The {split.name} dataset is already batched: its elements have x of shape {found}, and the "
                f"model takes examples of shape {expected}. Remove batch(): batches are made by the advisor."
            )
        if not _compatible(expected, found):
            raise WorkloadError(
                f"The model takes examples of shape {expected}, and x of the {split.name} split has examples "
                f"of shape {found}. Make the model's input and the data agree."
            )


def check_losses(parts: Sequence[LossPart], head: Batch, splits: Mapping[str, Split]) -> None:
    """Raise WorkloadError where labels or outputs are not what a loss of Keras works on.

    ``parts`` are the losses computed on ``head``, the first examples.
    """
    for part in parts:
        _check_shapes(part)
        _check_probabilities(part)
        for split, path, labels in _labels_of(part, head, splits):
            if part.loss.keras_function == _SPARSE:
                _check_classes(split, path, labels, part)
            elif part.loss.keras_function in _BINARY:
                _check_binary(split, path, labels, part)


def check_target(target: Target | None, metrics: Sequence[str]) -> None:
    """Raise WorkloadError where the model does not report the target's metric."""
    if target is not None and target.metric not in metrics:
        raise WorkloadError(
            f"The target is on {target.metric!r}, which the model does not report. It reports "
            f"{', '.join(metrics)}: choose one of them, or add the metric to the workload's metrics."
        )


def check_names_are_read(workload: Workload, fixed: Iterable[str], read: Set[str]) -> None:
    """Raise WorkloadError where a hyperparameter is searched or ``fixed`` that nothing reads.

    ``read`` are the names that model and optimizer have read at the defaults. A name that stands in the
    user's code may be read at other values, and is let pass.
    """
    unread = sorted({*fixed, *workload.search_space} - read)
    if not unread:
        return
    spoken = words_of_workload(workload)
    wrong = [name for name in unread if not is_spoken_of(name, spoken)]
    valid = sorted({*read, *unread} - {*wrong})
    if wrong:
        raise WorkloadError(
            f"No part of the workload {workload.name!r} reads the hyperparameter "
            f"{', '.join(_with_closest(name, valid) for name in wrong)}, so that fixing or searching it "
            f"would change nothing. Correct or remove it; valid are {', '.join(valid) or 'none'}."
        )


def _with_closest(name: str, valid: Sequence[str]) -> str:
    closest = get_close_matches(name, valid, n=1)
    return f"{name!r} (did you mean {closest[0]!r}?)" if closest else repr(name)


def _check_finite(split: Split, path: str, column: _Column) -> None:
    if column.dtype.kind not in "fc":
        return
    bad = ~np.isfinite(column).reshape(len(column), -1).all(axis=1)
    if bad.any():
        what = "NaN" if np.isnan(column).any() else "infinite values"
        seen = f"{len(column):,}" if isinstance(split, ArraySplit) else f"the first {len(column):,}"
        raise WorkloadError(
            f"The {split.name} split has {what} in {path}, in {int(bad.sum()):,} of {seen} rows (first in "
            f"row {int(bad.argmax())}). Remove these rows, or replace the values."
        )


def _compatible(expected: tuple[int | None, ...], found: tuple[int, ...]) -> bool:
    """Return whether Keras takes ``found`` for ``expected``; it adds or drops a last dimension of 1."""
    if len(expected) != len(found):
        longer, shorter = sorted((expected, found), key=len, reverse=True)
        return longer[-1] in (1, None) and _compatible(longer[:-1], tuple(shorter))  # type: ignore[arg-type]
    return all(size in (None, other) or other is None for size, other in zip(expected, found, strict=True))


def _check_shapes(part: LossPart) -> None:
    """Refuse what numpy's rules would silently stretch, such as 10 outputs against one label."""
    labels, outputs = (_without_ones(tensor.shape) for tensor in (part.labels, part.predictions))
    if part.loss.keras_function in _ELEMENTWISE and labels != outputs:
        raise WorkloadError(
            f"The loss {part.loss.keras_function} compares labels and outputs one by one, but an example has "
            f"labels of shape {tuple(part.labels.shape[1:])} and outputs of shape "
            f"{tuple(part.predictions.shape[1:])}. Choose another loss, or outputs shaped like the labels."
        )


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    sizes = list(shape)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return tuple(sizes)


def _check_probabilities(part: LossPart) -> None:
    name, outputs = part.loss.keras_function, np.asarray(part.predictions)
    if name not in _PROBABILITIES or part.loss.options.get("from_logits"):
        return
    if outputs.min() < -_TOLERANCE or outputs.max() > 1 + _TOLERANCE:
        raise WorkloadError(
            f"The loss {name} expects probabilities, but the model's outputs range from {outputs.min():.3g} "
            f"to {outputs.max():.3g}. Give the last layer a softmax or sigmoid activation, or use the loss "
            "with from_logits=True."
        )


def _labels_of(
    part: LossPart, head: Batch, splits: Mapping[str, Split]
) -> Iterator[tuple[Split, str, _Column]]:
    """Yield the array of every split that the labels of ``part`` were the first rows of."""
    places = [index for index, leaf in enumerate(keras.tree.flatten(head)) if leaf is part.labels]
    for split in splits.values():
        columns = keras.tree.flatten(split.sample())
        for index in places:
            yield split, split.paths[index], columns[index]


def _check_classes(split: Split, path: str, labels: _Column, part: LossPart) -> None:
    classes, ignored = int(part.predictions.shape[-1]), part.loss.options.get("ignore_class")
    wrong = (labels < 0) | (labels >= classes) | (labels != np.floor(labels))
    if ignored is not None:
        wrong &= labels != ignored
    _raise_where(
        wrong, split, path, labels, f"{_SPARSE} of {classes} outputs needs labels 0 to {classes - 1}"
    )


def _check_binary(split: Split, path: str, labels: _Column, part: LossPart) -> None:
    wrong = (labels < 0) | (labels > 1)
    _raise_where(wrong, split, path, labels, f"{part.loss.keras_function} needs labels from 0 to 1")


def _raise_where(wrong: _Column, split: Split, path: str, labels: _Column, need: str) -> None:
    if wrong.any():
        where = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise WorkloadError(
            f"{need}, but {path} of the {split.name} split holds {labels[where]} in row {int(where[0])} "
            f"({int(wrong.sum()):,} of {wrong.size:,} labels are outside). Change the labels or the outputs."
        )
