"""How long compiled programs spend in Python functions that they call back into."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from tensorflow.python.ops import script_ops


class HostClock:
    """Sums the time (s) of calls of ``py_function`` and ``numpy_function``."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count one call."""
        with self._lock:
            self.seconds += seconds


@contextmanager
def timing_host_calls() -> Iterator[HostClock]:
    """Time every call from a compiled program into Python inside the ``with``.

    TensorFlow keeps one registry through which all of them go, and offers no public way to see them.
    """
    registry = type(script_ops._py_funcs)
    original, clock = registry.__call__, HostClock()

    def timed(self: Any, *arguments: Any) -> Any:
        start = perf_counter()
        try:
            return original(self, *arguments)
        finally:
            clock.add(perf_counter() - start)

    registry.__call__ = timed
    try:
        yield clock
    finally:
        registry.__call__ = original
