"""Other programs that keep processors busy are noticed, and our own processes are not taken for them."""

import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from advisor.execution import load
from advisor.execution.load import LoadWatch

SPIN = "while True: pass"
# The one in the middle ends at once, so that the busy one is nobody's descendant here.
ORPHAN = f"""
import subprocess, sys
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.Popen([sys.executable, "-c", "{SPIN}"], start_new_session=True, **quiet).pid)
"""
WINDOW_S = 1.0


@pytest.fixture
def stranger() -> Iterator[Callable[[], int]]:
    """Return a function that starts a busy process of no kin; they are ended afterwards."""
    started: list[int] = []

    def start() -> int:
        done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, check=True)
        started.append(int(done.stdout))
        return started[-1]

    yield start
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def watched() -> float:
    watch = LoadWatch()
    watch.start()
    time.sleep(WINDOW_S)
    found = watch.competing_cpus()
    assert found is not None
    return found


def test_a_busy_stranger_counts(stranger: Callable[[], int]) -> None:
    pid = stranger()
    assert psutil.Process(pid).ppid() != os.getpid()
    assert watched() > 0.4


def test_our_own_work_and_that_of_descendants_does_not_count() -> None:
    """Ours and theirs together are no more than the machine has, whatever else runs on it."""
    processors = psutil.cpu_count() or 1
    children = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(processors)]
    ours = [psutil.Process(), *(psutil.Process(child.pid) for child in children)]
    watch = LoadWatch()
    watch.start()
    begun, before_s = time.monotonic(), used_s(ours)
    while time.monotonic() < begun + WINDOW_S:
        pass
    share = (used_s(ours) - before_s) / (time.monotonic() - begun)
    found = watch.competing_cpus()
    for child in children:
        child.kill()
        child.wait()
    assert found is not None
    assert 0 <= found <= processors - share + 0.15


def used_s(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def test_processors_that_this_process_may_not_use_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of three processors, of which the second is ours: it was busy for a quarter of the time."""
    times = namedtuple("times", ["user", "system", "idle", "iowait", "guest"])
    began = [times(0.0, 0.0, 0.0, 0.0, 0.0)] * 3
    ended = [times(4.0, 0.0, 0.0, 0.0, 0.0), times(0.75, 0.25, 2.0, 1.0, 0.5), times(4.0, 0.0, 0.0, 0.0, 0.0)]
    clocks = iter([began, ended])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    monkeypatch.setattr(load.psutil, "cpu_times", lambda percpu: next(clocks))
    monkeypatch.setattr(load, "_own_s", lambda: 0.0)
    monkeypatch.setattr(load, "time", SimpleNamespace(monotonic=iter([0.0, 4.0]).__next__))
    assert LoadWatch().competing_cpus() == pytest.approx(0.25)


def test_a_short_window_says_nothing() -> None:
    watch = LoadWatch()
    watch.start()
    assert watch.competing_cpus() is None


def tool(folder: Path, text: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_programs_on_the_gpu_are_named_but_for_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tool(tmp_path, f"echo '{os.getpid()}, python'; echo '1, /usr/bin/trainer, with a comma'")
    assert LoadWatch().gpu_processes() == ("/usr/bin/trainer, with a comma (1)",)


def test_numbers_of_no_process_here_are_of_another_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    ended = subprocess.Popen(["true"])
    ended.wait()
    tool(tmp_path, f"echo '{ended.pid}, python'; echo '[N/A], python'; echo; echo '1, trainer'")
    assert LoadWatch().gpu_processes() == ("trainer (1)",)


@pytest.mark.parametrize("text", [None, "exit 9", "exec sleep 60", "true"])
def test_where_the_tool_is_missing_or_broken_nothing_is_said(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor.execution.load._NVIDIA_TIMEOUT_S", 0.5)
    monkeypatch.setenv("PATH", str(tmp_path) if text is None else f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    if text is not None:
        tool(tmp_path, text)
    assert LoadWatch().gpu_processes() == ()
