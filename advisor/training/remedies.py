"""Changes of an input pipeline that may help, each tried on the training step itself."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import fmean, geometric_mean, stdev
from typing import Any

import keras
import numpy as np
import psutil  # type: ignore[import-untyped]
import tensorflow as tf

from advisor.analysis.quantities import memory
from advisor.errors import AdvisorError, SessionError
from advisor.records.bottleneck import Remedy
from advisor.training import devices
from advisor.training.data import ArraySplit, DatasetSplit, Split
from advisor.training.faults import brief
from advisor.training.producers import produced
from advisor.training.stages import Stage, TimedPipeline
from advisor.training.stopwatch import read_through, seconds_per_element
from advisor.training.transformations import (
    Dataset,
    UnknownStageError,
    generator_of,
    in_parallel,
    is_enumerate,
    kind,
    name_of,
    parts_of,
)

_SLOW_SHARE = 0.2
_MEMORY_SHARE = 0.25
_CACHE_SAVES_NOTHING = frozenset({"CacheDataset", "_TensorSliceDataset", "_TensorDataset", "_RangeDataset"})
ROUNDS = 3
"""How often the step before a change and the step with it are timed in turn."""
_STUDENT_95 = 2.920  # the 0.95 quantile of Student's t for ROUNDS - 1 degrees of freedom

TimeSteps = Callable[[Split], Callable[[float], float]]
"""Returns what times training steps on a split: given about how long (s), it returns the time of one (s).

Nothing else may hold what reads the split.
"""


@dataclass(frozen=True)
class Change:
    """Another training split to try, open while it is timed."""

    name: str
    how: str
    opened: Callable[[], AbstractContextManager[Split]]
    caveat: str = ""


class Bench:
    """Times training splits at one batch size against the one it is made with.

    ``input_s`` is the time that the pipeline of that one takes for a batch (s).
    """

    def __init__(self, before: Split, batch_size: int, seconds: float, time_steps: TimeSteps) -> None:
        self.batch_size, self.seconds, self._time_steps = batch_size, seconds, time_steps
        self.input_s, self._step_before = self._input_s(before), time_steps(before)

    def tried(self, change: Change) -> Remedy | str:
        """Return what ``change`` does to input and step, or in a sentence why that could not be seen.

        Raises :class:`SessionError` where the change left something behind that goes on in this process.
        """
        try:
            with change.opened() as split:
                return self._compared(change, split)
        except SessionError:
            raise
        except UnknownStageError as stage:
            return f"{_begun(change.name)} could not be tried: {stage}, a later stage, cannot be built again."
        except AdvisorError as error:
            return f"{_begun(change.name)} could not be measured. {error}"
        except Exception as error:  # It runs the user's functions, which may raise anything.
            return f"{_begun(change.name)} could not be measured. {brief(error)}"

    def _compared(self, change: Change, split: Split) -> Remedy:
        """Time the step before and with ``change`` in turn, so that both meet the same other programs."""
        input_s, step_after, each_s = self._input_s(split), self._time_steps(split), self.seconds / ROUNDS
        pairs = [(self._step_before(each_s), step_after(each_s)) for _ in range(ROUNDS)]
        before_s, after_s = (geometric_mean(times) for times in zip(*pairs, strict=True))
        times = (self.input_s, input_s, before_s, after_s)
        return Remedy(change.name, change.how, *times, change.caveat, lower_speedup(pairs))

    def _input_s(self, split: Split) -> float:
        return seconds_per_element(split.stream(self.batch_size, 0, 0), self.seconds)


def lower_speedup(pairs: Sequence[tuple[float, float]]) -> float:
    """Return a lower bound of the speedup, with 95 % confidence, from the times in ``ROUNDS`` rounds.

    ``pairs`` are (time before, time with the change). The logarithms of their ratios are taken as normal:
    noise of a ratio is relative.
    """
    logs = [math.log(before / after) for before, after in pairs]
    return math.exp(fmean(logs) - _STUDENT_95 * stdev(logs) / math.sqrt(len(logs)))


@dataclass(frozen=True)
class Candidates:
    """What may help a dataset: ``before`` is the split as it was timed, with its ``pipeline``."""

    before: DatasetSplit
    pipeline: TimedPipeline
    bench: Bench

    def changes(self, unused: Sequence[str], producers: int) -> Iterator[Change | str]:
        """Yield the changes that apply, and in sentences what to do or why one does not apply."""
        yield from self._parallel("_MapDataset", "parallel map", "num_parallel_calls")
        yield from self._parallel("_InterleaveDataset", "parallel reads", "num_parallel_calls")
        yield from self._parallel("TFRecordDatasetV2", "parallel reads", "num_parallel_reads")
        yield from self._cache()
        if unused:
            yield without(self.before, unused)
        if producers > 0:
            yield self._producers(producers)
        yield from (_advice(stage) for stage in self._slow if generator_of(stage.dataset) is not None)

    @property
    def _slow(self) -> list[Stage]:
        """The stages that take a good part of the pipeline's time."""
        least = _SLOW_SHARE * self.bench.input_s / self.bench.batch_size
        return [stage for stage in self.pipeline.stages if stage.time_s >= least]

    def _parallel(self, of_kind: str, name: str, argument: str) -> Iterator[Change]:
        slow = [stage for stage in self._slow if kind(stage.dataset) == of_kind]
        if slow:
            named = " and ".join(stage.name for stage in slow)
            how = f"Give {'the ' if '(' in named else ''}{named} {argument}=tf.data.AUTOTUNE."
            datasets = [stage.dataset for stage in slow]
            yield Change(name, how, lambda: self._open(in_parallel(self.pipeline.dataset, datasets)))

    def _cache(self) -> Iterator[Change | str]:
        if all(kind(stage.dataset) in _CACHE_SAVES_NOTHING for stage in self._slow):
            return
        size, free = self.before.examples * self.before.example_bytes, _free_bytes()
        if size > _MEMORY_SHARE * free:
            yield (
                f"A cache could not be tried: the examples take {memory(size)}, more than a quarter of the "
                f"free memory ({memory(free)})."
            )
            return
        caveat = (
            f"It holds {memory(size)}. Where a map before it draws random numbers (augmentation), cache "
            "before that map instead, or every epoch sees the same examples."
        )
        yield Change("cache", "End the train dataset with .cache().", self._open_cached, caveat)

    def _producers(self, count: int) -> Change | str:
        name = f"{count} producer{'s' if count > 1 else ''}"
        whole = next((part for part in parts_of(self.pipeline.dataset) if _is_undivided(part)), None)
        if whole is not None:
            divided = name_of(whole)
            return f"{name} could not be tried: a tf.data service cannot divide the elements of {divided}."
        how = (
            f"Start {count} workers of a tf.data service, and end the train dataset with "
            ".apply(tf.data.experimental.service.distribute("
            "tf.data.experimental.service.ShardingPolicy.DYNAMIC, address))."
        )
        opened = partial(_open_produced, self.before, self.pipeline.dataset, count)
        return Change(name, how, opened, _caveat_of_producers(self.pipeline.dataset))

    def _open(self, dataset: Dataset) -> AbstractContextManager[Split]:
        return nullcontext(alike(self.before, dataset))

    def _open_cached(self) -> AbstractContextManager[Split]:
        """Fill a cache with as many examples as can be made in the time of one trial."""
        count = int(self.bench.seconds / max(self.pipeline.time_s, 1e-9))
        cached = self.pipeline.dataset.take(max(1, count)).cache()
        read_through(cached)
        return self._open(cached)


def alike(split: DatasetSplit, dataset: Dataset) -> DatasetSplit:
    """Return a split of another ``dataset`` that is shuffled as ``split`` is."""
    other = DatasetSplit(split.name, dataset, split.examples)
    other.shuffle_buffer = split.shuffle_buffer
    return other


def without(split: Split, unused: Sequence[str]) -> Change:
    """Return the change that leaves nothing of the features ``unused`` but their place."""
    how = f"Leave {' and '.join(unused)} out of the examples."
    if isinstance(split, ArraySplit):
        return Change("drop unused features", how, partial(_open_arrays, split, unused))
    caveat = "It was tried at the end of the pipeline; left out where the data is read, they may save more."

    def opened() -> AbstractContextManager[Split]:
        empty = partial(_emptied, paths=split.paths, unused=unused, empty=_no_elements)
        return nullcontext(alike(split, split.dataset.map(lambda *example: empty(example))))

    return Change("drop unused features", how, opened, caveat)


def _open_arrays(split: ArraySplit, unused: Sequence[str]) -> AbstractContextManager[Split]:
    """Return the arrays without ``unused``; large ones are shared rather than copied."""
    shape, empty = [split.examples, 0], partial(_emptied, paths=split.paths, unused=unused)
    other = ArraySplit(split.name, empty(split.arrays, empty=lambda leaf: np.zeros(shape, leaf.dtype)))
    if not other.is_resident:
        other.tensors = empty(split.tensors, empty=lambda leaf: tf.zeros(shape, leaf.dtype))
    return nullcontext(other)


def _emptied(structure: Any, paths: Sequence[str], unused: Sequence[str], empty: Callable[[Any], Any]) -> Any:
    leaves = zip(paths, keras.tree.flatten(structure), strict=True)
    kept = [empty(leaf) if path in unused else leaf for path, leaf in leaves]
    return keras.tree.pack_sequence_as(structure, kept)


def _no_elements(leaf: Any) -> tf.Tensor:
    return tf.zeros([0], leaf.dtype)


@contextmanager
def _open_produced(before: DatasetSplit, dataset: Dataset, count: int) -> Iterator[Split]:
    with produced(dataset, count) as shared:
        yield alike(before, shared)


def _is_undivided(dataset: Dataset) -> bool:
    """Return whether producers cannot divide what ``dataset`` reads among themselves."""
    is_pairing = kind(dataset) == "_ZipDataset" and not is_enumerate(dataset)
    return is_pairing or generator_of(dataset) is not None


def _caveat_of_producers(dataset: Dataset) -> str:
    shared = "They shared this process and its processors; on machines of their own they may do more."
    if any(kind(part) in ("_TakeDataset", "_SkipDataset") for part in parts_of(dataset)):
        return f"{shared} Each of them counts take and skip for itself."
    return shared


def _advice(stage: Stage) -> str:
    return (
        f"{_begun(stage.name)} makes one example after the other in Python. Write it as a map over a dataset "
        "of indices, with num_parallel_calls=tf.data.AUTOTUNE, or write its examples to TFRecord files once."
    )


def _free_bytes() -> int:
    """Return how much more memory this process can have, of the machine's and below a limit of its own."""
    of_machine, used = int(psutil.virtual_memory().available), devices.memory()
    if used.limit_bytes is None or used.charged_bytes is None:
        return of_machine
    return min(of_machine, used.limit_bytes - used.charged_bytes)


def _begun(name: str) -> str:
    return name[0].upper() + name[1:]
