"""Sessions in real child processes: they answer as they would here, and fail in words."""

import inspect
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import (
    OutOfMemoryError,
    SessionError,
    SessionTimeoutError,
    SuspectedMemoryError,
    WorkloadError,
)
from advisor.execution import local, process
from advisor.execution.local import ChildSession, LocalSessions
from advisor.execution.memory import default_memory_limit_bytes
from advisor.records.requests import WorkloadReference
from advisor.workflows.ports import TrainingSession
from tests.execution.processes import ended, members, open_session, pid_of
from tests.execution.sessions import SlopeSession

GIB = 2**30


@pytest.fixture(scope="module")
def child() -> Iterator[ChildSession]:
    session = open_session("open_slope")
    yield session
    session.close()


def trained(session: TrainingSession, checkpoint: Path) -> list[float]:
    """Return what a run reports that saves, trains on, and goes back."""
    session.reset(8, {"learning_rate": 0.05}, seed=3)
    losses = [session.train(5).training_loss, session.evaluate("validation").metrics["loss"]]
    session.save(checkpoint)
    losses.append(session.train(20).training_loss)
    session.restore(checkpoint)
    losses.append(session.train(20).training_loss)
    return losses


def test_a_child_answers_exactly_as_the_session_itself(child: ChildSession, tmp_path: Path) -> None:
    there = trained(child, tmp_path / "child")
    assert there == trained(SlopeSession(), tmp_path / "here")
    assert there[2] == there[3] < there[0]
    assert (tmp_path / "child").exists()


def test_description_and_memory_travel(child: ChildSession) -> None:
    here, there = SlopeSession().describe(), child.describe()
    assert (there.name, there.target, there.examples) == (here.name, here.target, here.examples)
    assert (there.metrics, there.fingerprint) == (here.metrics, here.fingerprint)
    assert 0 < (child.memory().peak_bytes or 0) < GIB


def test_the_child_is_a_process_of_its_own_in_the_same_directory(child: ChildSession) -> None:
    environment = child.describe().environment
    pid = int(environment["pid"])
    assert pid != os.getpid()
    assert os.getpgid(pid) == os.getsid(pid) == pid
    assert environment["directory"] == str(Path.cwd())
    assert environment["arguments"] == "[]"
    assert environment["oom_score_adj"] == "1000"


def test_two_sessions_do_not_share_state(child: ChildSession) -> None:
    other = open_session("open_slope")
    child.reset(4, {}, seed=1)
    other.reset(4, {}, seed=1)
    child.train(50)
    assert other.evaluate("validation").step == 0
    other.close()


def test_an_error_leaves_the_session_usable(child: ChildSession) -> None:
    with pytest.raises(WorkloadError, match="batch size 65 is not between 1 and the 64"):
        child.reset(65, {}, seed=0)
    child.reset(64, {}, seed=0)
    assert child.train(3).steps == 3


def test_relative_paths_mean_the_callers_directory(
    child: ChildSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    child.reset(4, {}, seed=0)
    child.save(Path("here"))
    child.restore(Path("here"))
    assert (tmp_path / "here").exists()
    (trace,) = child.profile(Path("traces"), 2)
    assert trace.is_relative_to(tmp_path / "traces") and trace.exists()


@pytest.mark.parametrize(
    ("fault", "kind", "message", "detail"),
    [
        ("value error", SessionError, "ValueError: expected RESOURCE_EXHAUSTED", "raise error"),
        ("runtime error", OutOfMemoryError, "ran out of memory: RuntimeError: CUDA_ERROR", "raise error"),
        ("out of memory", OutOfMemoryError, "^too large$", "said the allocator"),
        ("ask", SessionError, "EOFError", "input"),
        ("system exit", SessionError, "failed: SystemExit: the file left", "raise error"),
    ],
)
def test_what_a_session_raises(fault: str, kind: type[SessionError], message: str, detail: str) -> None:
    session = open_session("open_faulty", fault)
    with pytest.raises(SessionError, match=message) as raised:
        session.train(1)
    assert type(raised.value) is kind
    assert detail in raised.value.detail
    assert session.evaluate("validation").examples == 64
    session.close()


def test_a_users_own_error_class_arrives_as_the_one_it_extends() -> None:
    session = open_session("open_faulty", "workload error")
    with pytest.raises(WorkloadError, match=r"^labels are out of range\.$") as raised:
        session.train(1)
    assert type(raised.value) is WorkloadError
    session.close()


def test_a_result_that_cannot_travel_is_a_failure_of_the_call() -> None:
    session = open_session("open_secretive")
    with pytest.raises(SessionError, match="pickle"):
        session.describe()
    session.close()


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (
            "kill",
            SuspectedMemoryError,
            r"during a block of training steps \(signal SIGKILL\); out of memory is suspected",
        ),
        ("exit 137", SuspectedMemoryError, r"exit status 137, signal SIGKILL\); out of memory is suspected"),
        ("segfault", SuspectedMemoryError, r"SIGSEGV\); out of memory is suspected.*limit \d+\.\d GiB"),
        (
            "abort",
            OutOfMemoryError,
            r"ran out of memory and died during a block of training steps \(signal SIGABRT\)",
        ),
        ("exit 3", SessionError, r"died during a block of training steps \(exit status 3\)"),
        ("hang up", SessionError, r"died during a block of training steps \(it closed its connection\)"),
    ],
)
def test_a_death_is_told_by_its_manner(
    fault: str, kind: type[SessionError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_EXIT_S", 1.0)
    session = open_session("open_faulty", fault)
    pid = pid_of(session)
    with pytest.raises(SessionError, match=message) as raised:
        session.train(1)
    assert type(raised.value) is kind
    assert ended(pid)
    with pytest.raises(SessionError, match="evaluate was called on a training session that has ended"):
        session.evaluate("validation")
    session.close()


def test_a_file_called_like_a_module_stands_in_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("random", "pickle", "select", "advisor"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the wrong module')")
    monkeypatch.chdir(tmp_path)
    session = open_session("open_slope")
    assert session.evaluate("validation").examples == 64
    session.close()


def test_the_detail_of_a_crash_ends_where_it_happened() -> None:
    session = open_session("open_faulty", "segfault")
    with pytest.raises(OutOfMemoryError) as raised:
        session.train(1)
    assert "in _segfault" in raised.value.detail
    assert "Extension modules" not in raised.value.detail


def test_a_death_between_calls_is_told_by_the_next() -> None:
    session = open_session("open_slope")
    os.kill(pid_of(session), signal.SIGKILL)
    with pytest.raises(OutOfMemoryError, match="SIGKILL"):
        session.evaluate("validation")
    session.close()


@pytest.mark.parametrize("fault", ["hang", "hang with lock", "flood for ever"])
def test_a_call_beyond_its_deadline_is_ended(fault: str) -> None:
    session = open_session("open_faulty", fault, call_timeout_s=1.5)
    pid, started = pid_of(session), time.monotonic()
    with pytest.raises(SessionTimeoutError, match=r"did not finish a block of training steps within 1\.5 s"):
        session.train(1)
    assert time.monotonic() - started < 10
    assert ended(pid)


def test_what_to_do_about_a_deadline_is_told_where_it_can_be_done() -> None:
    session = open_session(
        "open_faulty", "hang", call_timeout_s=1.5, timeout_advice="allow more with --timeout"
    )
    with pytest.raises(SessionTimeoutError, match=r"hangs in the workload, or allow more with --timeout\.$"):
        session.train(1)
    with pytest.raises(SessionTimeoutError, match=r"starting within 1 s .* give it less to do at a time\.$"):
        open_session("open_faultily", "hang", start_timeout_s=1.0, timeout_advice="allow more with --timeout")


def test_every_call_has_words() -> None:
    calls = {name for name, _ in inspect.getmembers(TrainingSession, inspect.isfunction) if name[0] != "_"}
    assert calls == set(process._DOING)


def test_describing_may_take_longer_than_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session("open_late", call_timeout_s=0.5)
    assert session.describe().name == "slope"
    monkeypatch.setattr(local, "LOAD_TIMEOUT_S", 0.25)
    with pytest.raises(
        SessionTimeoutError, match=r"did not finish loading and checking the workload within 0\.5 s"
    ):
        session.describe()


def test_steps_that_are_known_to_be_slow_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PATIENCE", 1000)
    session = open_session("open_faulty", "doze", call_timeout_s=2.0)
    session.reset(8, {}, seed=0)
    session.train(1)  # takes a second
    assert session.train(3).steps == 3
    session.reset(8, {}, seed=0)
    with pytest.raises(SessionTimeoutError):
        session.train(3)


def test_the_first_call_says_nothing_of_later_ones_once_there_is_another() -> None:
    """The first step takes a second, as one that compiles does, and the third call hangs."""
    session = open_session("open_compiling", call_timeout_s=1.5)
    session.reset(8, {}, seed=0)
    assert session.train(1).seconds > 1
    session.train(1)
    with pytest.raises(SessionTimeoutError, match=r"did not finish a block of training steps within 1\.5 s"):
        session.train(1)


def test_looking_into_a_step_may_take_longer_than_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session("open_late", call_timeout_s=0.5)
    session.reset(8, {}, seed=0)
    assert session.profile(tmp_path, 1)
    assert session.diagnose(0.0, 0).stages == ()
    monkeypatch.setattr(local, "CALL_TIMEOUT_S", 0.25)
    with pytest.raises(
        SessionTimeoutError, match=r"did not finish examining the input pipeline within 0\.5 s"
    ):
        session.diagnose(0.0, 0)


def test_too_little_memory_is_told_before_a_child_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.subprocess, "Popen", lambda *_, **__: pytest.fail("a child was started"))
    with pytest.raises(SessionError, match="limit of 8 bytes was asked for"):
        open_session("open_slope", memory_limit_bytes=8)


def test_a_child_gets_no_more_than_its_share() -> None:
    session = open_session("open_slope", memory_limit_bytes=2 * GIB, memory_share_bytes=GIB)
    assert session.describe().environment["data_limit_bytes"] == str(GIB)
    session.close()


def test_a_frozen_child_is_ended() -> None:
    session = open_session("open_slope", call_timeout_s=1.5)
    pid = pid_of(session)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(SessionTimeoutError):
        session.train(1)
    assert ended(pid)


def test_fifty_megabytes_of_output_cost_nothing() -> None:
    session = open_session("open_faulty", "flood", call_timeout_s=30.0)
    session.reset(8, {}, seed=0)
    assert session.train(1).steps == 1
    session.close()


def test_only_the_end_of_the_output_is_kept() -> None:
    session = open_session("open_faulty", "flood and exit", call_timeout_s=30.0)
    with pytest.raises(SessionError) as raised:
        session.train(1)
    assert raised.value.detail.endswith("last words")
    assert len(raised.value.detail) < 20_000


def test_an_allocation_beyond_the_limit_fails_and_harms_nothing() -> None:
    session = open_session("open_faulty", "allocate", memory_limit_bytes=GIB // 2)
    assert session.describe().environment["data_limit_bytes"] == str(GIB // 2)
    with pytest.raises(OutOfMemoryError, match="ran out of memory: MemoryError"):
        session.train(1)
    assert session.evaluate("validation").examples == 64
    session.close()


def test_without_a_stated_limit_a_child_may_take_what_is_available(child: ChildSession) -> None:
    expected, limit = default_memory_limit_bytes(), int(child.describe().environment["data_limit_bytes"])
    assert expected is not None
    assert 0.3 * expected < limit < 3 * expected


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("workload error", WorkloadError, "labels are out of range"),
        ("value error", SessionError, "ValueError"),
        ("exit 3", SessionError, r"died during starting \(exit status 3\)"),
        ("kill", OutOfMemoryError, "suspected"),
    ],
)
def test_a_session_that_does_not_open(fault: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        open_session("open_faultily", fault)


@pytest.mark.parametrize("fault", ["hang", "flood for ever"])
def test_a_session_that_does_not_open_in_time(fault: str) -> None:
    with pytest.raises(SessionTimeoutError, match="did not finish starting within 1 s"):
        open_session("open_faultily", fault, start_timeout_s=1.0)


def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(SessionError, match=r"No module named 'tests\.execution\.nothing'"):
        LocalSessions("tests.execution.nothing:open", WorkloadReference("x")).open()


@pytest.mark.parametrize("interpreter", ["", "/nonexistent/python"])
def test_no_interpreter_is_an_error_and_no_fallback(
    interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    with pytest.raises(SessionError, match="start"):
        open_session("open_slope")


def test_no_place_for_temporary_files_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")
    with pytest.raises(SessionError, match=r"could not be started: .*/dev/full"):
        open_session("open_slope")


def test_closing_ends_everything_and_may_be_repeated() -> None:
    session = open_session("open_slope")
    pid = pid_of(session)
    assert len(members(pid)) == 2  # the session and its watchdog
    session.close()
    assert ended(pid)
    session.close()


@pytest.mark.parametrize(("entry", "fault"), [("open_stubborn", ""), ("open_faulty", "leave a thread")])
def test_closing_one_that_will_not_end(entry: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_CLOSE_S", 0.5)
    session = open_session(entry, fault)
    pid = pid_of(session)
    session.reset(8, {}, seed=0)
    session.train(1)
    session.close()
    assert ended(pid)


def test_a_child_that_dies_before_its_children_is_noticed_and_takes_them_along() -> None:
    session = open_session("open_faulty", "die and leave children", call_timeout_s=60.0)
    pid, started = pid_of(session), time.monotonic()
    with pytest.raises(OutOfMemoryError):
        session.train(1)
    assert time.monotonic() - started < 10
    assert ended(pid)


def test_the_room_loads_nothing_heavy() -> None:
    program = (
        "import sys, advisor.execution.local, advisor.execution.child\n"
        "print({'numpy', 'scipy', 'tensorflow', 'keras', 'optuna', 'sqlalchemy', 'click'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
