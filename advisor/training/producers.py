"""A pipeline that several producers of a ``tf.data`` service run, all in this process."""

import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import tensorflow as tf

from advisor.errors import AdvisorError, SessionError

_PATIENCE_S = 30.0
_INTERVAL_MS = 50
_still_read: list[Any] = []


@contextmanager
def produced(dataset: tf.data.Dataset, producers: int) -> Iterator[tf.data.Dataset]:
    """Give the elements of ``dataset``, over and over, as ``producers`` producers make and mix them.

    Every reader of it must be gone when the ``with`` ends. Repeating before the service spares the second
    that it waits at the end of each epoch. Raises :class:`AdvisorError` where TensorFlow does not tell what
    its workers do, and :class:`SessionError` where they cannot be stopped: they go on in this process, which
    is then of no more use.
    """
    service = tf.data.experimental.service
    if not hasattr(service.WorkerServer, "_num_tasks"):
        raise AdvisorError(
            f"TensorFlow {tf.__version__} does not tell when a worker is idle, so it could not be stopped."
        )
    dispatcher = service.DispatchServer(_dispatcher_settings())
    settings = service.WorkerConfig(
        dispatcher_address=dispatcher.target.partition("://")[2],
        heartbeat_interval_ms=_INTERVAL_MS,
        dispatcher_timeout_ms=int(1000 * _PATIENCE_S),
    )
    workers = [service.WorkerServer(settings) for _ in range(producers)]
    policy = service.ShardingPolicy.DYNAMIC
    try:
        yield dataset.repeat().apply(service.distribute(policy, dispatcher.target, compression=None))
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # They hold readers.
        raise
    finally:
        _stop(dispatcher, workers)


def _dispatcher_settings() -> Any:
    """Return settings under which work that nobody reads any more is dropped at once.

    For jobs that are sharded dynamically only TensorFlow's own message of settings can say so.
    """
    from tensorflow.core.protobuf import service_config_pb2

    return service_config_pb2.DispatcherConfig(
        protocol="grpc",
        job_gc_check_interval_ms=_INTERVAL_MS,
        job_gc_timeout_ms=1,
        gc_dynamic_sharding_jobs=True,
    )


def _stop(dispatcher: Any, workers: Sequence[Any]) -> None:
    """Stop the servers, once none of their work is under way.

    Stopping holds Python's lock, and would wait for ever for work that needs it. What nobody reads any more
    leaves the count before it has ended; but a worker drops other work only after that.
    """
    gc.collect()
    service = tf.data.experimental.service
    marker = tf.data.Dataset.range(1).repeat()
    try:
        _wait_until(lambda: not any(worker._num_tasks() for worker in workers))
        other = iter(marker.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target)))
        _wait_until(lambda: all(worker._num_tasks() for worker in workers))
        del other
        _wait_until(lambda: not any(worker._num_tasks() for worker in workers))
    except TimeoutError as error:
        _still_read.append((dispatcher, workers))
        raise SessionError(
            f"The workers of a tf.data service were still busy {_PATIENCE_S:.0f} s after their last reader "
            "had gone, so the session is given up. Measure without --input-workers."
        ) from error
    for server in (*workers, dispatcher):
        server.stop()


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + _PATIENCE_S
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError
        sleep(_INTERVAL_MS / 1000)
