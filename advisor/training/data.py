"""The splits of a workload: arrays or datasets, read by the training feed, by evaluation and by checks.

An example is a tuple ``(x[, y[, sample_weight]])``, each part an array or a nested dict or tuple of arrays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from advisor.errors import WorkloadError
from advisor.records.workload import Workload
from advisor.training.faults import blaming_the_workload

Batch = Any
"""A tuple ``(x[, y[, sample_weight]])`` of tensors whose first dimension is the batch size."""

RESIDENT_BYTES = 256 * 2**20
"""Arrays up to this size live on the training device."""
_SHUFFLE_BYTES = 256 * 2**20
_SAMPLED = 256
_SAMPLED_BYTES = 64 * 2**20
_REQUIRED = ("train", "validation")
_LABELS_DIFFER = (
    "The labels (y) of one batch differ in shape, and zeros in their place would count as true labels. Pad y "
    "in the dataset, and give a sample_weight of the same length that is 0 there."
)
_FORMS = (
    "(x, y) or (x, y, sample_weight) of arrays, an unbatched tf.data.Dataset of such examples, or a function "
    "of a tf.distribute.InputContext that returns one"
)


class ArraySplit:
    """A split given as arrays of equal length."""

    def __init__(self, name: str, parts: tuple[Any, ...]) -> None:
        self.name = name
        self.arrays: Batch = keras.tree.lists_to_tuples(
            keras.tree.map_structure(lambda leaf: _array(leaf, name), parts)
        )
        self.paths, leaves = _named_leaves(self.arrays)
        lengths = {path: len(leaf) for path, leaf in zip(self.paths, leaves, strict=True)}
        if len(set(lengths.values())) > 1:
            counted = ", ".join(f"{path} has {length:,}" for path, length in lengths.items())
            raise WorkloadError(f"The arrays of the {name} split differ in length: {counted}.")
        self.examples = len(leaves[0])
        self.example_bytes = sum(leaf[:1].nbytes for leaf in leaves)
        self.is_resident = sum(leaf.nbytes for leaf in leaves) <= RESIDENT_BYTES
        self._largest = _Largest(self._rows)

    @cached_property
    def tensors(self) -> Batch:
        """The arrays on the device, or in the host's memory where they are large."""
        with tf.device(None if self.is_resident else "CPU"):
            return keras.tree.map_structure(tf.constant, self.arrays)

    def head(self, count: int) -> Batch:
        """Return the first ``count`` examples as one batch of numpy arrays."""
        return keras.tree.map_structure(lambda leaf: leaf[:count], self.arrays)

    def sample(self) -> Batch:
        """Return all examples, as numpy arrays."""
        return self.arrays

    def largest(self, count: int, size: Callable[..., float] | None) -> Batch:
        """Return ``count`` times the example of the largest ``size``; without one all are alike."""
        return self.head(count) if size is None else _repeated(self._largest.by(size), count)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield all examples in order, the last batch as short as it comes."""
        if batch_size >= self.examples:
            yield self.tensors
            return
        for start in range(0, self.examples, batch_size):
            rows = slice(start, start + batch_size)
            yield keras.tree.map_structure(lambda leaf, rows=rows: leaf[rows], self.tensors)

    def stream(self, batch_size: int, seed: int, step: int) -> tf.data.Dataset:
        """Return endless training batches from ``step`` on, in the order of :func:`epoch_order`."""
        steps = self.examples // batch_size
        tensors = self.tensors

        def rows_of_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
            order = epoch_order(seed, epoch, self.examples)[: steps * batch_size]
            return tf.data.Dataset.from_tensor_slices(tf.reshape(order, [steps, batch_size]))

        rows = tf.data.Dataset.range(step // steps, tf.int64.max).flat_map(rows_of_epoch).skip(step % steps)
        batches = rows.map(lambda row: gather(tensors, row), num_parallel_calls=tf.data.AUTOTUNE)
        return batches.prefetch(tf.data.AUTOTUNE)

    def _rows(self) -> Iterator[Batch]:
        for row in range(self.examples):
            yield keras.tree.map_structure(lambda leaf, row=row: leaf[row], self.arrays)


class DatasetSplit:
    """A split given as an unbatched ``tf.data.Dataset``."""

    def __init__(self, name: str, dataset: tf.data.Dataset, examples: int | None = None) -> None:
        self.name = name
        self.dataset = _of_tuples(dataset, name)
        self.paths, specs = _named_leaves(self.dataset.element_spec)
        _require_dense(name, self.paths, specs)
        self.is_resident = False
        self._largest = _Largest(self.dataset.as_numpy_iterator)
        self.examples = _count(self.dataset, name) if examples is None else examples
        first = keras.tree.flatten(self.head(1)) if self.examples else []
        self.example_bytes = sum(np.asarray(leaf).nbytes for leaf in first)
        self.shuffle_buffer = max(1, min(self.examples, _SHUFFLE_BYTES // max(1, self.example_bytes)))

    def head(self, count: int) -> Batch:
        """Return the first ``count`` examples as one batch of numpy arrays."""
        with blaming_the_workload(f"reading the {self.name} dataset"):
            return next(iter(batched(self.dataset.take(count), count).as_numpy_iterator()))

    def sample(self) -> Batch:
        """Return some hundred examples at the start, as numpy arrays."""
        return self.head(max(1, min(_SAMPLED, self.examples, _SAMPLED_BYTES // max(1, self.example_bytes))))

    def largest(self, count: int, size: Callable[..., float] | None) -> Batch:
        """Return ``count`` times the example of the largest ``size``, by default of the most elements."""
        with blaming_the_workload(f"looking for the largest example of the {self.name} dataset"):
            return _repeated(self._largest.by(size or elements), count)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield all examples in order, the last batch as short as it comes."""
        yield from batched(self.dataset, batch_size).prefetch(tf.data.AUTOTUNE)

    def stream(self, batch_size: int, seed: int, step: int) -> tf.data.Dataset:
        """Return endless shuffled training batches from ``step`` on."""
        shuffled = self.dataset.shuffle(
            self.shuffle_buffer, seed=seed, reshuffle_each_iteration=True
        ).repeat()
        return batched(shuffled, batch_size, drop_remainder=True).skip(step).prefetch(tf.data.AUTOTUNE)


class _Largest:
    """The largest of some examples, which are read once and not again for the same measure."""

    def __init__(self, examples: Callable[[], Iterator[Batch]]) -> None:
        self._examples = examples
        self._found: tuple[Callable[..., float], Batch] | None = None

    def by(self, size: Callable[..., float]) -> Batch:
        if self._found is None or self._found[0] is not size:
            self._found = size, max(self._examples(), key=lambda example: size(*example))
        return self._found[1]


def batched(dataset: tf.data.Dataset, batch_size: int, drop_remainder: bool = False) -> tf.data.Dataset:
    """Return batches of ``batch_size`` examples; those whose x differ in length are padded with zeros.

    So are their labels where a sample weight is padded alike, whose zeros take the padding out of the loss.
    Other labels that differ in length within a batch raise ``InvalidArgumentError`` when it is read.
    """
    spec = dataset.element_spec
    leaves = keras.tree.flatten(spec)
    can_pad = all(leaf.shape.rank is not None for leaf in leaves)
    if not can_pad or have_known_shape(leaves):
        return dataset.batch(batch_size, drop_remainder=drop_remainder)
    if _weights_spare_labels(spec):
        return dataset.padded_batch(batch_size, drop_remainder=drop_remainder)
    shaped = dataset.map(lambda *example: (example, keras.tree.map_structure(tf.shape, example[1])))
    return shaped.padded_batch(batch_size, drop_remainder=drop_remainder).map(_with_labels_alike)


def _weights_spare_labels(spec: Batch) -> bool:
    """Return whether every label of unknown shape has a sample weight of unknown shape."""
    _, labels, weights = (keras.tree.flatten(part) for part in (*spec, (), ())[:3])
    of_labels = weights if len(weights) == len(labels) else len(labels) * weights[:1]
    spared = [not have_known_shape([weight]) for weight in of_labels] or len(labels) * [False]
    return all(
        have_known_shape([label]) or is_spared for label, is_spared in zip(labels, spared, strict=True)
    )


def _with_labels_alike(batch: Batch, shapes: Any) -> Batch:
    """Return ``batch``, whose labels have these ``shapes`` by example, unless the shapes differ."""
    alike = [tf.reduce_all(shape == shape[:1]) for shape in keras.tree.flatten(shapes)]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(alike), [_LABELS_DIFFER])]):
        return keras.tree.map_structure(tf.identity, batch)


def have_known_shape(specs: Sequence[tf.TensorSpec]) -> bool:
    """Return whether no dimension of ``specs`` may differ from example to example."""
    return all(spec.shape.is_fully_defined() for spec in specs)


Split = ArraySplit | DatasetSplit


def load_splits(workload: Workload) -> Mapping[str, Split]:
    """Call the workload's data function and return its splits by name."""
    with blaming_the_workload(f"loading the data of {workload.name}"):
        data = workload.data()
    if not isinstance(data, Mapping):
        raise WorkloadError(
            f"The data function of {workload.name} returned {type(data).__name__}; return a dict with "
            f"'train' and 'validation', each {_FORMS}."
        )
    missing = [name for name in _REQUIRED if name not in data]
    if missing:
        raise WorkloadError(
            f"The data of {workload.name} has no {' and no '.join(map(repr, missing))} split, only "
            f"{', '.join(map(repr, data)) or 'an empty dict'}. Return a dict with 'train' and 'validation'."
        )
    return {name: _split(name, value) for name, value in data.items()}


def epoch_order(seed: Any, epoch: Any, examples: int) -> tf.Tensor:
    """Return a permutation of ``range(examples)``, int64, that depends on ``seed`` and ``epoch`` alone."""
    numbers = tf.range(examples, dtype=tf.int64)
    key = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    return tf.random.experimental.stateless_shuffle(numbers, seed=key, alg="philox")


def gather(tensors: Batch, rows: tf.Tensor) -> Batch:
    """Return the examples at ``rows`` of every tensor."""
    return keras.tree.map_structure(lambda leaf: tf.gather(leaf, rows), tensors)


def elements(*example: Any) -> int:
    """Return how many numbers or texts ``example``, or a batch, has in all."""
    return sum(np.size(leaf) for leaf in keras.tree.flatten(example))


def _repeated(example: Batch, count: int) -> Batch:
    return keras.tree.map_structure(lambda leaf: np.repeat(np.asarray(leaf)[None], count, axis=0), example)


def _split(name: str, value: Any) -> Split:
    if callable(value) and not isinstance(value, tf.data.Dataset):
        with blaming_the_workload(f"calling the function that gives the {name} split"):
            value = value(tf.distribute.InputContext())
    if isinstance(value, tf.data.Dataset):
        return DatasetSplit(name, value)
    if isinstance(value, tuple) and 1 <= len(_without_none(value)) <= 3:
        return ArraySplit(name, _without_none(value))
    raise WorkloadError(f"The {name} split is of type {type(value).__name__}. Give {_FORMS}.")


def _without_none(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return parts if not parts or parts[-1] is not None else _without_none(parts[:-1])


def _array(leaf: Any, split: str) -> np.ndarray[Any, Any]:
    """Return ``leaf`` as an array; floats take the precision that Keras computes in."""
    array = np.asarray(leaf)
    if array.ndim == 0 or (array.dtype == object and not all(isinstance(item, str) for item in array.flat)):
        raise WorkloadError(
            f"The {split} split holds a {type(leaf).__name__} that is no array (type {array.dtype}, "
            f"{array.ndim} dimensions). Use numpy arrays whose first dimension counts the examples, all rows "
            "of one length."
        )
    return array.astype(keras.config.floatx(), copy=False) if array.dtype.kind == "f" else array


def _named_leaves(structure: Batch) -> tuple[list[str], list[Any]]:
    """Return names such as ``x``, ``y`` or ``x['image']`` of the leaves, and the leaves."""
    named = keras.tree.flatten_with_path(structure)
    roots = ("x", "y", "sample_weight")
    names = [roots[path[0]] + "".join(f"[{key!r}]" for key in path[1:]) for path, _ in named]
    return names, [leaf for _, leaf in named]


def _of_tuples(dataset: tf.data.Dataset, name: str) -> tf.data.Dataset:
    spec = dataset.element_spec
    if not isinstance(spec, tuple):
        return dataset.map(lambda example: (example,))
    if len(spec) > 3:
        raise WorkloadError(
            f"Each example of the {name} dataset has {len(spec)} parts; give (x, y) or (x, y, sample_weight)."
        )
    return dataset


def _require_dense(name: str, paths: Sequence[str], specs: Sequence[Any]) -> None:
    for path, spec in zip(paths, specs, strict=True):
        if not isinstance(spec, tf.TensorSpec):
            raise WorkloadError(
                f"{path} of the {name} dataset is described by a {type(spec).__name__}. Give dense tensors, "
                "of unknown length where examples differ: batches are padded. Ragged ones become dense with "
                "to_tensor in a map, sparse ones with tf.sparse.to_dense; leave out a part that is None."
            )


def _count(dataset: tf.data.Dataset, name: str) -> int:
    """Return the number of examples, by reading all of them once where the dataset does not know."""
    cardinality = int(dataset.cardinality())
    if cardinality == tf.data.INFINITE_CARDINALITY:
        raise WorkloadError(
            f"The {name} dataset never ends. Remove repeat(), or end it with take(n): training repeats it "
            "by itself."
        )
    if cardinality == tf.data.UNKNOWN_CARDINALITY:
        with blaming_the_workload(f"counting the examples of the {name} dataset"):
            return int(dataset.reduce(np.int64(0), lambda count, _: count + 1))
    return cardinality
