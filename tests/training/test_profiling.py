"""A profile is recorded or refused in words, keeps older ones, and becomes a trace that viewers can show."""

import errno
import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from time import perf_counter_ns

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from advisor.errors import SessionError
from advisor.training import profiling
from advisor.training.profiling import nested, profile, write_chrome_trace

PROTOBUF = "tensorflow.tsl.profiler.protobuf"
MATRIX = tf.random.stateless_normal((128, 128), (0, 0))


@tf.function
def multiply(times):
    step = lambda done, x: (done + 1, tf.matmul(x, MATRIX) / 128.0)  # noqa: E731
    return tf.while_loop(lambda done, _: done < times, step, (0, MATRIX))[1]


def run():
    multiply(tf.constant(5)).numpy()


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


def events(trace, kind):
    document = json.loads(gzip.decompress(trace.read_bytes()))
    return [event for event in document["traceEvents"] if event["ph"] == kind]


def nanoseconds(event):
    """Return start and end as a viewer rounds them."""
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def assert_nested(complete):
    """Check that on each track an event lies inside another or beside it."""
    tracks = defaultdict(list)
    for event in complete:
        tracks[event["pid"], event["tid"]].append(nanoseconds(event))
    for spans in tracks.values():
        open_ends = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Return the files of a profile in a new folder, and how long it took (ns)."""
    run()
    start = perf_counter_ns()
    written = profile(run, tmp_path_factory.mktemp("profile") / "new" / "folder")
    return written, perf_counter_ns() - start


def test_both_files_lie_where_tensorboard_looks(profiled):
    (recorded, trace), _ = profiled
    folder = recorded.parents[3]
    assert files(folder) == {recorded, trace}
    assert recorded.parents[1] == trace.parents[1] == folder / "plugins" / "profile"
    assert recorded.name.removesuffix(".xplane.pb") == trace.name.removesuffix(".trace.json.gz")
    assert {child.name for child in folder.iterdir()} == {"plugins"}
    planes = xplane_pb2.XSpace.FromString(recorded.read_bytes()).planes
    assert "/host:CPU" in [plane.name for plane in planes]


def test_the_trace_shows_what_ran_within_the_time_that_it_took(profiled):
    (_, trace), elapsed_ns = profiled
    complete = events(trace, "X")
    assert len([event for event in complete if "MatMul" in event["name"]]) >= 5
    assert min(nanoseconds(event)[0] for event in complete) == 0
    assert all(0 <= start <= end <= elapsed_ns for start, end in map(nanoseconds, complete))
    assert_nested(complete)


def test_every_process_and_every_track_of_the_trace_has_a_name(profiled):
    (_, trace), _ = profiled
    named = events(trace, "M")
    tracks = {(event["pid"], event["tid"]) for event in named if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events(trace, "X")} == tracks
    assert {event["pid"] for event in named if event["name"] == "process_name"} == {pid for pid, _ in tracks}
    assert all(event["args"]["name"] for event in named)


def test_profiles_one_after_another_do_not_overwrite_each_other(tmp_path):
    first = profile(run, tmp_path)
    before = [path.read_bytes() for path in first]
    others = [profile(run, tmp_path) for _ in range(2)]
    assert [path.read_bytes() for path in first] == before
    assert files(tmp_path) == {*first, *others[0], *others[1]}
    assert len(files(tmp_path)) == 6


@pytest.mark.parametrize("raised", [ValueError("no data"), KeyboardInterrupt()])
def test_what_is_profiled_may_raise_and_the_profiler_is_stopped(raised, tmp_path):
    def fail():
        run()
        raise raised

    with pytest.raises(type(raised)) as seen:
        profile(fail, tmp_path)
    assert seen.value is raised
    assert list(tmp_path.iterdir()) == []
    assert len(profile(run, tmp_path)) == 2


def test_a_profiler_that_is_active_already_is_told_and_goes_on(tmp_path):
    calls = []
    tf.profiler.experimental.start(str(tmp_path / "other"))
    try:
        with pytest.raises(SessionError, match="another one is active in this process"):
            profile(lambda: calls.append(1), tmp_path / "ours")
    finally:
        tf.profiler.experimental.stop()
    assert not calls
    assert files(tmp_path / "other")
    assert not files(tmp_path / "ours")


def test_a_profiler_that_is_switched_off_is_told(tmp_path):
    program = (
        "from pathlib import Path\n"
        "from advisor.errors import SessionError\n"
        "from advisor.training.profiling import profile\n"
        "try:\n"
        f"    profile(lambda: None, Path({str(tmp_path)!r}))\n"
        "except SessionError as error:\n"
        "    print(error)\n"
    )
    environment = os.environ | {"TF_DISABLE_PROFILING": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "TF_DISABLE_PROFILING is set" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_profiler_that_is_missing_is_told(tmp_path, monkeypatch):
    monkeypatch.delattr(tf.profiler.experimental, "start")
    with pytest.raises(SessionError, match=r"cannot start; do without a profile\. AttributeError"):
        profile(run, tmp_path)


def test_a_profiler_that_was_stopped_by_what_it_watched_is_told(tmp_path):
    with pytest.raises(SessionError, match=r"wrote nothing to .*stops the profiler itself"):
        profile(tf.profiler.experimental.stop, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(tmp_path):
    calls = []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SessionError, match=r"file/folder: Not a directory\. Name another folder"):
        profile(lambda: calls.append(1), tmp_path / "file" / "folder")
    assert not calls


def test_what_was_recorded_stays_where_it_cannot_be_converted(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, f"{PROTOBUF}.xplane_pb2", None)
    monkeypatch.delattr(sys.modules[PROTOBUF], "xplane_pb2")
    with pytest.raises(SessionError) as said:
        profile(run, tmp_path)
    (recorded,) = files(tmp_path)
    assert recorded.name.endswith(".xplane.pb")
    assert str(said.value).startswith(
        f"The profile for TensorBoard was written to {recorded}, but the trace for Perfetto"
    )
    assert "ModuleNotFoundError" in str(said.value)
    assert {child.name for child in tmp_path.iterdir()} == {"plugins"}


def test_no_part_of_a_trace_stays_where_the_space_ends(tmp_path, monkeypatch):
    def write_in_part(recorded, trace):
        trace.write_bytes(b"[")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(profiling, "write_chrome_trace", write_in_part)
    with pytest.raises(SessionError, match=r"could not be made of it\. .*No space left on device"):
        profile(run, tmp_path)
    (recorded,) = files(tmp_path)
    assert recorded.name.endswith(".xplane.pb")


def space_of(*planes):
    """Return a space of planes, each (name, lines), a line (name, start in ns, spans), a span in ps."""
    space = xplane_pb2.XSpace()
    for plane_name, lines in planes:
        plane = space.planes.add(name=plane_name)
        plane.event_metadata[1].name, plane.event_metadata[1].display_name = "dense/MatMul:MatMul", "MatMul"
        for number, name in enumerate(["bytes", "FLOAT", "shape", "_internal", "id", "share"], 1):
            plane.stat_metadata[number].name = name
        for name, start_ns, spans in lines:
            line = plane.lines.add(id=-(2**60), name=name, timestamp_ns=start_ns)
            for offset, duration in spans:
                line.events.add(metadata_id=1, offset_ps=offset, duration_ps=duration)
    return space


def converted(space, folder):
    (folder / "a.xplane.pb").write_bytes(space.SerializeToString())
    write_chrome_trace(folder / "a.xplane.pb", folder / "a.trace.json.gz")
    return folder / "a.trace.json.gz"


def test_devices_and_threads_keep_their_places_in_time_and_apart(tmp_path):
    now = 1_700_000_000_000_000_000
    host = ("/host:CPU", [("python", now + 7, [(1_000, 5_000_000)])])
    device = ("/device:GPU:0", [("Stream #1", now, [(250_500, 750_000)]), ("Stream #2", now + 1, [(0, 1)])])
    trace = converted(space_of(host, device), tmp_path)
    seen = [(event["pid"], event["tid"], *nanoseconds(event)) for event in events(trace, "X")]
    assert seen == [(1, 1, 7, 5007), (2, 2, 249, 999), (2, 3, 0, 0)]
    names = [(event["pid"], event["args"]["name"]) for event in events(trace, "M")]
    assert names == [
        *((1, "/host:CPU"), (1, "python")),
        *((2, "/device:GPU:0"), (2, "Stream #1"), (2, "Stream #2")),
    ]


def test_an_event_says_which_operation_it_is_of_and_what_was_noted(tmp_path):
    space = space_of(("/host:CPU", [("python", 0, [(0, 1_000)])]))
    stats = space.planes[0].lines[0].events[0].stats
    stats.add(metadata_id=1, uint64_value=2**63)
    stats.add(metadata_id=3, ref_value=2)
    stats.add(metadata_id=4, int64_value=3)
    stats.add(metadata_id=5, bytes_value=b"\x00")
    stats.add(metadata_id=6, double_value=float("nan"))
    (event,) = events(converted(space, tmp_path), "X")
    assert event["name"] == "MatMul"
    noted = {"bytes": "9223372036854775808", "shape": "FLOAT", "share": "nan"}
    assert event["args"] == {"op": "dense/MatMul:MatMul", **noted}


def test_events_that_overlap_in_part_are_shown_on_tracks_of_their_own(tmp_path):
    spans = [(0, 10_000), (2_000, 3_000), (8_000, 5_000), (12_000, 4_000)]
    trace = converted(space_of(("/host:CPU", [("queue", 0, spans)])), tmp_path)
    complete = events(trace, "X")
    assert [(event["tid"], *nanoseconds(event)) for event in complete] == [
        *((1, 0, 10), (1, 2, 5), (2, 8, 13), (1, 12, 16)),
    ]
    assert [event["args"]["name"] for event in events(trace, "M")[1:]] == ["queue", "queue (2)"]
    assert_nested(complete)


def test_marks_and_counts_without_a_place_in_time_are_left_out(tmp_path):
    space = space_of(("/host:CPU", [("python", 0, [(0, 1_000), (500, 0)])]))
    space.planes[0].lines[0].events.add(metadata_id=1, num_occurrences=3, duration_ps=9_000)
    assert len(events(converted(space, tmp_path), "X")) == 1


def test_a_trace_without_events_is_no_trace(tmp_path):
    with pytest.raises(ValueError, match="empty"):
        converted(space_of(("/host:CPU", [("python", 0, [])])), tmp_path)


instants = st.integers(0, 30)


@given(st.lists(st.tuples(instants, instants).map(sorted), max_size=30))
def test_every_span_is_on_one_track_where_it_nests_and_no_track_is_needless(pairs):
    spans = [(start, end, number) for number, (start, end) in enumerate(pairs)]
    placed = list(nested(spans))
    assert sorted(span for _, span in placed) == sorted(spans)
    assert_nested(
        {"pid": 1, "tid": track, "ts": start / 1000, "dur": (end - start) / 1000}
        for track, (start, end, _) in placed
    )
    tracks = [track for track, _ in placed]
    assert set(tracks) == set(range(max(tracks, default=-1) + 1))
    overlapping = any(a[0] < b[0] < a[1] < b[1] for a in spans for b in spans)
    assert (len(set(tracks)) > 1) == overlapping
