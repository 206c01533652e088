"""What each stage of a ``tf.data`` pipeline costs: the pipeline up to each of them is run by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from advisor.training.stopwatch import Reader, read_through, seconds_per_element
from advisor.training.transformations import (
    Dataset,
    UnknownStageError,
    copied,
    inputs_of,
    is_hidden,
    is_memory_cache,
    kind,
    name_of,
    shuffle_buffer_of,
)

_FILLING_SHARE = 0.25
_CACHE_TIMES = 4.0
_CACHE_FLOOR_S = 5.0
_FULL_CACHE_GAIN = 4.0
_ONE_TO_ONE = frozenset(
    {
        *("_MapDataset", "_ParallelMapDataset", "_ShuffleDataset", "_PrefetchDataset", "CacheDataset"),
        *("_TakeDataset", "_TakeWhileDataset", "_SkipDataset", "_RepeatDataset", "_ScanDataset"),
        *("_ZipDataset", "_OptionsDataset", "_RestructuredDataset", "_AssertCardinalityDataset"),
    }
)


@dataclass(frozen=True)
class Stage:
    """One transformation, with the time that it adds to each element at the end of the pipeline (s)."""

    dataset: Dataset
    name: str
    time_s: float


@dataclass(frozen=True)
class TimedPipeline:
    """A pipeline that was timed.

    ``dataset`` gives what the user's gives, but starts sooner: its shuffle buffers are small and its caches
    full. ``time_s`` is the time of one of its elements.
    """

    dataset: Dataset
    time_s: float
    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()


def time_stages(dataset: Dataset, seconds: float) -> TimedPipeline:
    """Time ``dataset`` and all that it reads, each for about ``seconds``.

    Raises :class:`~advisor.training.transformations.UnknownStageError` where a stage cannot be looked into.
    """
    inputs = [time_stages(source, seconds) for source in inputs_of(dataset)]
    notes = tuple(note for source in inputs for note in source.notes)
    if is_memory_cache(dataset):
        if _is_full(dataset, inputs[0].time_s, seconds):
            return _timed_cache(dataset, seconds)
        notes += ("The cache was not full when it was timed: the times are those of the first epoch.",)
    try:
        dataset = _quick_to_start(dataset, inputs, seconds)
    except UnknownStageError as stage:
        notes += (f"The time of {stage} may include the filling of a shuffle buffer before it.",)
    if is_hidden(dataset):
        return replace(inputs[0], dataset=dataset, notes=notes)
    time_s = seconds_per_element(dataset, seconds)
    shares = [_elements_read(dataset, source, seconds) for source in inputs_of(dataset)]
    return _joined(dataset, time_s, inputs, shares, notes)


def shuffle_limit(time_s: float, seconds: float) -> int:
    """Return how many elements that take ``time_s`` each a buffer may hold, to be full soon."""
    return max(1, int(_FILLING_SHARE * seconds / max(time_s, 1e-9)))


def _quick_to_start(dataset: Dataset, inputs: Sequence[TimedPipeline], seconds: float) -> Dataset:
    """Return ``dataset`` on its inputs as they were timed, with a small buffer where it is a shuffle."""
    sources = [source.dataset for source in inputs]
    if kind(dataset) == "_ShuffleDataset":
        limit = shuffle_limit(inputs[0].time_s, seconds)
        if shuffle_buffer_of(dataset) > limit:
            return sources[0].shuffle(limit)
    if all(new is old for new, old in zip(sources, inputs_of(dataset), strict=True)):
        return dataset
    return copied(dataset, sources)


def _is_full(cache: Dataset, source_s: float, seconds: float) -> bool:
    """Fill ``cache`` where that does not take long; return whether it is full, then or from before.

    A few seconds are never long, so that a small cache is filled however slow the machine is.
    """
    limit = max(_CACHE_TIMES * seconds, _CACHE_FLOOR_S)
    elements = int(cache.cardinality())
    if elements != tf.data.INFINITE_CARDINALITY and elements * source_s <= limit:
        return read_through(cache, limit)
    return seconds_per_element(cache, seconds) * _FULL_CACHE_GAIN < source_s


def _timed_cache(cache: Dataset, seconds: float) -> TimedPipeline:
    """Time a full cache; the stages before it have nothing to do after the first epoch."""
    time_s = seconds_per_element(cache, seconds)
    note = "The stages before the cache run in the first epoch alone; they are left out."
    return TimedPipeline(cache, time_s, (Stage(cache, name_of(cache), time_s),), (note,))


def _joined(
    dataset: Dataset,
    time_s: float,
    inputs: Sequence[TimedPipeline],
    shares: Sequence[float | None],
    notes: tuple[str, ...],
) -> TimedPipeline:
    """Return the pipeline with what ``dataset`` adds to its inputs, or all in one where that is not known."""
    name, known = name_of(dataset), [share for share in shares if share is not None]
    if len(known) < len(shares):
        note = f"The time of {name} includes the stages before it: how much it reads of them is not known."
        return TimedPipeline(dataset, time_s, (Stage(dataset, name, time_s),), (*notes, note))
    pairs = list(zip(inputs, known, strict=True))
    before = [
        replace(stage, time_s=share * stage.time_s) for source, share in pairs for stage in source.stages
    ]
    own = time_s - sum(share * source.time_s for source, share in pairs)
    return TimedPipeline(dataset, time_s, (*before, Stage(dataset, name, max(0.0, own))), notes)


def _elements_read(dataset: Dataset, source: Dataset, seconds: float) -> float | None:
    """Return how many elements of ``source`` go into one of ``dataset``, or None where that is not known."""
    if kind(dataset) in _ONE_TO_ONE:
        return 1.0
    given, taken = int(dataset.cardinality()), int(source.cardinality())
    if given > 0 and taken >= 0:
        return taken / given
    try:
        return _counted(dataset, source, seconds)
    except UnknownStageError:
        return None


def _counted(dataset: Dataset, source: Dataset, seconds: float) -> float:
    """Count the elements that ``dataset`` takes from ``source``, with nothing that reads ahead."""
    if len(inputs_of(dataset)) > 1:
        raise UnknownStageError(name_of(dataset))
    with tf.device("CPU"):
        taken = tf.Variable(0, dtype=tf.int64, trainable=False)

    def count(*element: Any) -> Any:
        taken.assign_add(1)
        return element if isinstance(source.element_spec, tuple) else element[0]

    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    counting = copied(dataset, [source.map(count)]).repeat().with_options(options)
    reader = Reader(counting)
    reader.read(1)
    before = int(taken)
    given, _ = reader.read_for(seconds)
    return (int(taken) - before) / given if given else 0.0
