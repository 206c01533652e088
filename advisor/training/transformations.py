"""The ``tf.data`` objects of a pipeline: what they read from, their names, and copies on other inputs.

TensorFlow has no public view of them. Those that can be copied keep each argument as an attribute of its
name, with an underscore before it. A version of TensorFlow that keeps something elsewhere raises
:class:`UnknownStageError` in whatever looks for it.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import tensorflow as tf

from advisor.training import data

Dataset = Any
"""A ``tf.data.Dataset``."""

_NAMES = {
    "_TensorSliceDataset": "arrays",
    "_TensorDataset": "one element",
    "TFRecordDatasetV2": "TFRecord files",
    "TextLineDatasetV2": "TextLine files",
    "FixedLengthRecordDatasetV2": "files of records of fixed length",
    "CsvDatasetV2": "CSV files",
    "_DirectedInterleaveDataset": "sample from datasets",
}
_READERS = frozenset({"TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2"})
_HIDDEN = frozenset({"_OptionsDataset", "_RestructuredDataset", "_AssertCardinalityDataset"})
_WITH_ARGUMENTS = frozenset(
    {
        *("_MapDataset", "_ParallelMapDataset", "_FilterDataset", "_TakeWhileDataset", "_FlatMapDataset"),
        *("_TakeDataset", "_SkipDataset", "_RepeatDataset", "_ShardDataset", "_PrefetchDataset"),
        *("_BatchDataset", "_ParallelBatchDataset", "_PaddedBatchDataset", "_UnbatchDataset"),
        *("_InterleaveDataset", "_RestructuredDataset", "_AssertCardinalityDataset", "CacheDataset"),
    }
)
_DETERMINISTIC = {"default": None, "true": True, "false": False}
_FROM_GENERATOR = "tensorflow.python.data.ops.from_generator_op"
_LIBRARIES = ("tensorflow", "keras")

_Further = ParamSpec("_Further")
_Found = TypeVar("_Found")


class UnknownStageError(Exception):
    """A stage that cannot be looked into or copied; its text is the name of the stage."""


def _looking_inside(
    look: Callable[Concatenate[Dataset, _Further], _Found],
) -> Callable[Concatenate[Dataset, _Further], _Found]:
    """Let ``look`` raise :class:`UnknownStageError` where TensorFlow has not what it looks for."""

    @wraps(look)
    def guarded(dataset: Dataset, /, *further: _Further.args, **named: _Further.kwargs) -> _Found:
        try:
            return look(dataset, *further, **named)
        except (AttributeError, LookupError, TypeError) as error:
            raise UnknownStageError(_plain_name(dataset)) from error

    return guarded


def kind(dataset: Dataset) -> str:
    """Return the name of TensorFlow's class of the last transformation."""
    return type(dataset).__name__


@_looking_inside
def inputs_of(dataset: Dataset) -> list[Dataset]:
    """Return the datasets that the last transformation reads; files and generators have none."""
    if kind(dataset) in _READERS or generator_of(dataset) is not None:
        return []
    return list(dataset._inputs())


def parts_of(dataset: Dataset) -> Iterator[Dataset]:
    """Yield ``dataset`` and everything that it reads, from the end to the sources."""
    yield dataset
    for source in inputs_of(dataset):
        yield from parts_of(source)


@_looking_inside
def generator_of(dataset: Dataset) -> Callable[..., Any] | None:
    """Return the Python function of a ``from_generator``, which is a flat map to TensorFlow."""
    if kind(dataset) != "_FlatMapDataset" or _module(dataset._map_func._func) != _FROM_GENERATOR:
        return None
    function = dataset._map_func._func
    start = inspect.getclosurevars(function).nonlocals["get_iterator_id_fn"]
    generator: Callable[..., Any] = inspect.getclosurevars(start).nonlocals["generator_state"]._generator
    return generator


@_looking_inside
def is_hidden(dataset: Dataset) -> bool:
    """Return whether the last transformation is no stage to a user: TensorFlow or we added it."""
    if kind(dataset) != "_MapDataset":
        return kind(dataset) in _HIDDEN
    function = dataset._map_func._func
    return _module(function) == data.__name__ or _is_internal(function)


@_looking_inside
def is_enumerate(dataset: Dataset) -> bool:
    """Return whether ``dataset`` is a zip with the counter that TensorFlow makes for itself."""
    return kind(dataset) == "_ZipDataset" and kind(dataset._inputs()[0]) == "_VariantDataset"


@_looking_inside
def is_memory_cache(dataset: Dataset) -> bool:
    """Return whether the last transformation is a cache in memory rather than in files."""
    return kind(dataset) == "CacheDataset" and not dataset._filename.numpy()


@_looking_inside
def shuffle_buffer_of(dataset: Dataset) -> int:
    """Return how many elements the shuffle ``dataset`` holds."""
    return int(dataset._buffer_size)


@_looking_inside
def name_of(dataset: Dataset) -> str:
    """Return what a user would call the last transformation, as in ``map load_image (my_data.py:12)``."""
    generator = generator_of(dataset)
    if generator is not None:
        return f"generator {name_of_function(generator)}"
    if is_enumerate(dataset):
        return "enumerate"
    own = (wrapper._func for wrapper in dataset._functions() if not _is_internal(wrapper._func))
    named = (name_of_function(function) for function in own)
    return " ".join([_plain_name(dataset), *list(named)[:1]])


def name_of_function(function: Any) -> str:
    """Return the name of a user's function, and where it stands, as in ``load_image (my_data.py:12)``."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "python_function", function))
    name = getattr(function, "__name__", type(function).__name__)
    name = name.replace("<lambda>", "lambda").removesuffix("V2")
    code = getattr(function, "__code__", getattr(type(function).__call__, "__code__", None))
    if code is None or _is_of_library(function):
        return str(name)
    is_file = not code.co_filename.startswith("<")
    place = f"{Path(code.co_filename).name}:" if is_file else "line "
    return f"{name} ({place}{code.co_firstlineno})"


@_looking_inside
def copied(dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    """Return the last transformation of ``dataset`` on other ``inputs``.

    Raises :class:`UnknownStageError` for a kind whose arguments are not all known, and for a cache in files,
    which holds what was made before.
    """
    make = _COPIES.get(kind(dataset))
    if make is None or (kind(dataset) == "CacheDataset" and not is_memory_cache(dataset)):
        raise UnknownStageError(name_of(dataset))
    return make(dataset, inputs)


@_looking_inside
def in_parallel(dataset: Dataset, stages: Sequence[Dataset]) -> Dataset:
    """Return ``dataset`` with each of ``stages``, which are sequential, calling its function in parallel.

    Raises :class:`UnknownStageError` where a later stage cannot be copied.
    """
    inputs = [in_parallel(source, stages) for source in inputs_of(dataset)]
    if any(dataset is stage for stage in stages):
        return _PARALLEL[kind(dataset)](dataset, *inputs)
    if all(new is old for new, old in zip(inputs, inputs_of(dataset), strict=True)):
        return dataset
    return copied(dataset, inputs)


def _plain_name(dataset: Dataset) -> str:
    """Return the name of the last transformation without that of a function."""
    plain = kind(dataset).strip("_").removesuffix("V2").removesuffix("Dataset")
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", plain).lower()
    return _NAMES.get(kind(dataset), words)


def _is_internal(function: Any) -> bool:
    """Return whether TensorFlow made ``function`` itself, for one of its own transformations."""
    return "<locals>" in getattr(function, "__qualname__", "") and _is_of_library(function)


def _is_of_library(function: Any) -> bool:
    return _module(function).partition(".")[0] in _LIBRARIES


def _module(function: Any) -> str:
    return str(getattr(function, "__module__", ""))


def _with_arguments(dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    """Return a transformation of the same class, made of the attributes that are named like its arguments."""
    names = list(inspect.signature(type(dataset).__init__).parameters)[2:]
    arguments = {name: _argument(dataset, name) for name in names if hasattr(dataset, f"_{name}")}
    return type(dataset)(inputs[0], **arguments)


def _argument(dataset: Dataset, name: str) -> Any:
    kept = getattr(dataset, f"_{name}")
    if name == "deterministic":
        return _DETERMINISTIC[kept]
    if name == "buffer_size":  # It is compared with AUTOTUNE, and the result must be Python's.
        return int(kept)
    return getattr(kept, "_func", kept)


def _shuffled(dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    """Return a shuffle with the seed of the operation; it is 0 where the user gave none."""
    reshuffle = dataset._reshuffle_each_iteration
    seed = int(dataset._seed2) or None
    return inputs[0].shuffle(shuffle_buffer_of(dataset), seed=seed, reshuffle_each_iteration=reshuffle)


def _zipped(dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    return tf.data.Dataset.zip(tf.nest.pack_sequence_as(dataset._datasets, list(inputs)))


_COPIES: Mapping[str, Callable[[Dataset, Sequence[Dataset]], Dataset]] = {
    **dict.fromkeys(_WITH_ARGUMENTS, _with_arguments),
    "_ShuffleDataset": _shuffled,
    "_OptionsDataset": lambda dataset, inputs: inputs[0].with_options(dataset.options()),
    "_ZipDataset": _zipped,
    "_ConcatenateDataset": lambda dataset, inputs: inputs[0].concatenate(inputs[1]),
}


def _parallel_map(dataset: Dataset, source: Dataset) -> Dataset:
    return source.map(dataset._map_func._func, num_parallel_calls=tf.data.AUTOTUNE)


def _parallel_interleave(dataset: Dataset, source: Dataset) -> Dataset:
    return source.interleave(
        dataset._map_func._func,
        cycle_length=int(dataset._cycle_length),
        block_length=int(dataset._block_length),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


def _parallel_records(dataset: Dataset) -> Dataset:
    return tf.data.TFRecordDataset(
        dataset._filenames,
        compression_type=dataset._compression_type,
        buffer_size=dataset._buffer_size,
        num_parallel_reads=tf.data.AUTOTUNE,
    )


_PARALLEL: Mapping[str, Callable[..., Dataset]] = {
    "_MapDataset": _parallel_map,
    "_InterleaveDataset": _parallel_interleave,
    "TFRecordDatasetV2": _parallel_records,
}
