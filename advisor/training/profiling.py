"""Traces of a few steps: for TensorBoard, and for viewers of Chrome's trace format such as Perfetto."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import tensorflow as tf

from advisor.errors import SessionError
from advisor.training.faults import brief

_RUNS = Path("plugins", "profile")
_RECORDED, _TRACE = ".xplane.pb", ".trace.json.gz"

Span = tuple[int, int, Any]
"""Start and end (ns) of an event, and the event as the profiler wrote it."""


def profile(run: Callable[[], object], folder: Path) -> tuple[Path, ...]:
    """Call ``run`` under TensorFlow's profiler; return the files written, which lie below ``folder``.

    The first is ``plugins/profile/TIME/HOST.xplane.pb``, for TensorBoard; the second, beside it, is made of
    it: ``HOST.trace.json.gz``, for viewers of Chrome's format. What ``run`` raises comes through, and then
    nothing is written. Raises :class:`SessionError` where the profiler is not available or cannot write,
    and where the first file stands without the second.
    """
    with _blaming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=".profile-", dir=folder))
    try:
        _record(run, staging, folder)
        return _keep(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def write_chrome_trace(recorded: Path, trace: Path) -> None:
    """Write the events of an ``.xplane.pb`` file to ``trace``, as compressed JSON in Chrome's trace format.

    Raises :class:`ValueError` where there are none.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(recorded.read_bytes())
    with gzip.open(trace, "wt", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        for number, event in enumerate(_trace_events(space)):
            file.write(",\n" * (number > 0) + json.dumps(event))
        file.write("]}\n")


def _record(run: Callable[[], object], staging: Path, folder: Path) -> None:
    _start(staging)
    try:
        run()
    except BaseException:
        with suppress(Exception):
            tf.profiler.experimental.stop(save=False)
        raise
    try:
        tf.profiler.experimental.stop()
    except Exception as error:
        raise SessionError(f"{_not_written(folder)} {brief(error)}") from error


def _start(staging: Path) -> None:
    try:
        tf.profiler.experimental.start(str(staging))
    except tf.errors.AlreadyExistsError as error:
        raise SessionError(
            "TensorFlow's profiler cannot start: another one is active in this process, or the environment "
            "variable TF_DISABLE_PROFILING is set. Stop the other, unset the variable, or do without."
        ) from error
    except Exception as error:  # An installation may lack a part of the profiler.
        raise SessionError(
            f"The profiler of TensorFlow {tf.__version__} cannot start; do without a profile. {brief(error)}"
        ) from error


def _keep(staging: Path, folder: Path) -> tuple[Path, ...]:
    """Move what was recorded to a new folder; TensorFlow's own names repeat within a second."""
    recorded = next(staging.glob(str(_RUNS / "*" / f"*{_RECORDED}")), None)
    if recorded is None:
        raise SessionError(_not_written(folder))
    with _blaming(folder):
        home = _new_folder(folder / _RUNS, recorded.parent.name)
        kept = recorded.rename(home / recorded.name)
    return kept, _converted(kept, recorded.parent)


def _converted(recorded: Path, staging: Path) -> Path:
    """Return the trace beside ``recorded``; it is written in ``staging``, so that no part of one is left."""
    trace = recorded.with_name(recorded.name.removesuffix(_RECORDED) + _TRACE)
    try:
        write_chrome_trace(recorded, staging / trace.name)
        return (staging / trace.name).rename(trace)
    except Exception as error:
        raise SessionError(
            f"The profile for TensorBoard was written to {recorded}, but the trace for Perfetto and "
            f"Chrome could not be made of it. {brief(error)}"
        ) from error


def _new_folder(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(parent / name for name in names if _is_made(parent / name))


def _is_made(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


@contextmanager
def _blaming(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SessionError(
            f"The profile cannot be written to {folder}: {error.strerror or error}. Name another folder."
        ) from error


def _not_written(folder: Path) -> str:
    return (
        f"TensorFlow's profiler wrote nothing to {folder}: look whether there is space left, and whether "
        "the workload stops the profiler itself."
    )


def _trace_events(space: Any) -> Iterator[Mapping[str, object]]:
    """Yield the events of all planes, such as devices, and of their lines, such as threads.

    Both are numbered anew: the profiler's own numbers repeat, or are larger than viewers take.
    """
    planes = [plane for plane in space.planes if plane.lines]
    origin = min(start for plane in planes for line in plane.lines for start, _, _ in _spans(line))
    tids = count(1)
    for pid, plane in enumerate(planes, 1):
        yield _name("process_name", pid, 0, plane.name)
        for line in plane.lines:
            numbers: list[int] = []
            for track, span in nested(_spans(line)):
                if track == len(numbers):
                    numbers.append(next(tids))
                    name = line.display_name or line.name
                    yield _name(
                        "thread_name", pid, numbers[track], f"{name} ({track + 1})" if track else name
                    )
                yield {"pid": pid, "tid": numbers[track], **_complete(plane, span, origin)}


def nested(spans: Iterable[Span]) -> Iterator[tuple[int, Span]]:
    """Yield the spans by start, each with the number of a track on which none of them overlap in part.

    Viewers drop an event that begins inside another and ends after it.
    """
    tracks: list[list[int]] = []  # the ends of what is open on each, outermost first
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        start, end, _ = span
        for ends in tracks:
            while ends and ends[-1] <= start:
                ends.pop()
        fitting = (number for number, ends in enumerate(tracks) if not ends or end <= ends[-1])
        track = next(fitting, len(tracks))
        if track == len(tracks):
            tracks.append([])
        tracks[track].append(end)
        yield track, span


def _spans(line: Any) -> Iterator[Span]:
    """Yield what has a place in time and a duration; the rest are counts and marks of the runtime's own."""
    for event in line.events:
        if event.duration_ps > 0 and not event.num_occurrences:
            start_ps = line.timestamp_ns * 1000 + event.offset_ps
            yield start_ps // 1000, (start_ps + event.duration_ps) // 1000, event


def _complete(plane: Any, span: Span, origin: int) -> Mapping[str, object]:
    start, end, event = span
    metadata = plane.event_metadata[event.metadata_id]
    arguments = {"op": metadata.name} if metadata.display_name else {}
    return {
        "ph": "X",
        "name": metadata.display_name or metadata.name,
        "ts": (start - origin) / 1000,
        "dur": (end - start) / 1000,
        "args": arguments | dict(_arguments(plane, event)),
    }


def _arguments(plane: Any, event: Any) -> Iterator[tuple[str, str]]:
    """Yield what the profiler noted about ``event``, without what is its own or not for reading."""
    for stat in event.stats:
        name, kind = plane.stat_metadata[stat.metadata_id].name, stat.WhichOneof("value")
        if kind == "ref_value":
            yield name, plane.stat_metadata[stat.ref_value].name
        elif kind not in (None, "bytes_value") and not name.startswith("_"):
            yield name, str(getattr(stat, kind))


def _name(kind: str, pid: int, tid: int, name: str) -> Mapping[str, object]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
