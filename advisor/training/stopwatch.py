"""How fast a ``tf.data`` pipeline gives its elements, without the cost of a loop in Python."""

import math
from statistics import median
from time import perf_counter
from typing import Any

import tensorflow as tf

_WARM_UP_SHARE = 0.25
_PARTS = 5
_LEAST_S = 1e-9
_CALLS = 10
_QUICK_S = 3e-4
_BLOCK = 32


class Reader:
    """Reads a dataset and throws its elements away, many in one call of a compiled loop."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        with tf.device("CPU"):
            self._iterator = iter(dataset)
        # Traced here, so that no reading is timed with it.
        limit = tf.TensorSpec([], tf.int64)
        self._read = tf.function(_read, autograph=False).get_concrete_function(self._iterator, limit)
        self.has_ended = False

    def read(self, limit: int) -> int:
        """Read ``limit`` elements, or fewer at the end of the dataset; return how many."""
        count = int(self._read(self._iterator, tf.constant(limit, tf.int64)))
        self.has_ended = count < limit
        return count

    def read_for(self, seconds: float) -> tuple[int, float]:
        """Read for about ``seconds``, at least one element; return how many, and the time taken (s)."""
        elements, taken, limit = 0, 0.0, 1
        while taken < seconds and not self.has_ended:
            count, time_s = _timed(self, limit)
            elements, taken = elements + count, taken + time_s
            limit = int(max(1, min(2 * limit, elements * seconds / taken / _CALLS)))
        return elements, taken


def seconds_per_element(dataset: tf.data.Dataset, seconds: float) -> float:
    """Return the time that an element of ``dataset`` takes while it is read over and over (s).

    It is timed for about ``seconds``, after a shorter time in which threads start and buffers fill. Nothing
    is prefetched but what ``dataset`` itself prefetches. Quick elements are read many at once, since the
    step of a compiled loop takes longer than they do.
    """
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    endless = dataset.repeat().with_options(options)
    reader, block = _started(endless), 1
    if _typical_pace(reader, _WARM_UP_SHARE * seconds) < _QUICK_S:
        reader, block = _started(endless.window(_BLOCK)), _BLOCK
        reader.read_for(_WARM_UP_SHARE * seconds)
    return _typical_pace(reader, seconds) / block


def read_through(dataset: tf.data.Dataset, seconds: float = math.inf) -> bool:
    """Read ``dataset`` once, for at most about ``seconds``; return whether its end was reached."""
    reader = Reader(dataset)
    reader.read_for(seconds)
    return reader.has_ended


def _started(dataset: tf.data.Dataset) -> Reader:
    """Return a reader whose first element is behind it."""
    reader = Reader(dataset)
    reader.read(1)
    return reader


def _typical_pace(reader: Reader, seconds: float) -> float:
    """Return the time of an element in the middle one of several parts of ``seconds`` (s).

    That spares it what other programs do for a moment. A part is a single call, whose own cost, that of a
    call for no elements, is taken off. A dataset without elements takes no time.
    """
    elements, taken = reader.read_for(seconds / _PARTS)
    if reader.has_ended:
        return taken / max(1, elements)
    call_s, paces = min(_timed(reader, 0)[1] for _ in range(_PARTS)), []
    for parts_left in range(_PARTS, 0, -1):
        asked = round(elements / max(taken, _LEAST_S) * seconds / parts_left)
        elements, taken = _timed(reader, max(1, asked))
        paces.append(max(0.0, taken - call_s) / max(1, elements))
        seconds -= taken
        if seconds <= 0 or reader.has_ended:
            break
    return median(paces)


def _timed(reader: Reader, limit: int) -> tuple[int, float]:
    """Read in one call; return how many elements came, and the time taken (s)."""
    start = perf_counter()
    return reader.read(limit), perf_counter() - start


def _read(iterator: Any, limit: tf.Tensor) -> tf.Tensor:
    def take(count: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        found = iterator.get_next_as_optional().has_value()
        return count + tf.cast(found, tf.int64), found

    with tf.device("CPU"):
        start = (tf.zeros([], tf.int64), tf.constant(True))
        count, _ = tf.while_loop(lambda count, found: found & (count < limit), take, start)
    return count
