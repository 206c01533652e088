"""However the parent ends, nothing that it started lives on, and its own script is not run again."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.execution.processes import ROOT, SESSIONS, ended, members, open_session, pid_of, wait_until

_OPEN = f"""
from advisor.execution.local import LocalSessions
from advisor.records.requests import WorkloadReference
def open_session(entry, source="slope", pickled=None):
    return LocalSessions("{SESSIONS}:" + entry, WorkloadReference(source, pickled)).open()
def pid_of(session):
    return session.describe().environment["pid"]
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@contextmanager
def parent(program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a parent of sessions in a process group of its own."""
    command = [sys.executable, "-c", _OPEN + program]
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    with started:
        try:
            yield started
        finally:
            if members(started.pid):
                os.killpg(started.pid, signal.SIGKILL)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("fault", "processes"), [("hang with children", 4), ("hang with lock", 2)])
def test_a_killed_parent_leaves_no_orphan(fault: str, processes: int) -> None:
    program = f"s = open_session('open_faulty', {fault!r}); print(pid_of(s)); s.train(1)"
    with parent(program) as process:
        child = int(line_of(process))
        assert wait_until(lambda: len(members(child)) == processes)
        time.sleep(0.3)  # for the session to be in its loop
        process.kill()
        assert ended(child)


def test_a_fork_of_the_parent_does_not_keep_its_session_alive() -> None:
    program = """
import os, time
session = open_session("open_slope")
if os.fork() == 0:
    time.sleep(60)
print(pid_of(session))
time.sleep(60)
"""
    with parent(program) as process:
        child = int(line_of(process))
        process.kill()
        assert ended(child)
        assert members(process.pid)  # the fork


def test_a_fork_that_ends_leaves_the_session_to_its_parent() -> None:
    program = """
import os, sys
session = open_session("open_slope")
if os.fork() == 0:
    sys.exit()
os.wait()
print(session.evaluate("validation").examples)
"""
    with parent(program) as process:
        assert line_of(process) == "64"
        assert process.wait(10) == 0


@pytest.mark.parametrize("ending", ["", "raise SystemExit(2)", "raise ValueError"])
def test_a_parent_that_forgets_to_close(ending: str) -> None:
    with parent(f"s = open_session('open_slope'); print(pid_of(s))\n{ending}") as process:
        child = int(line_of(process))
        process.wait(10)
        assert ended(child)


def test_an_interrupted_call_ends_the_child_and_tells_the_caller() -> None:
    program = """
s = open_session("open_faulty", "hang with children")
print(pid_of(s))
try:
    s.train(1)
except KeyboardInterrupt:
    print("interrupted")
    s.close()
    import time
    time.sleep(60)
"""
    with parent(program) as process:
        child = int(line_of(process))
        assert wait_until(lambda: len(members(child)) == 4)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert line_of(process) == "interrupted"
        assert ended(child)


def test_an_idle_session_does_not_hear_the_terminal() -> None:
    program = """
import time
s = open_session("open_slope")
try:
    print("ready")
    time.sleep(60)
except KeyboardInterrupt:
    print(s.evaluate("validation").examples)
"""
    with parent(program) as process:
        assert line_of(process) == "ready"
        os.killpg(process.pid, signal.SIGINT)
        assert line_of(process) == "64"


def test_a_session_that_nobody_holds_is_ended() -> None:
    session = open_session("open_slope")
    pid = pid_of(session)
    del session
    gc.collect()
    assert ended(pid)


def test_what_a_workload_prints_stays_out_of_the_terminal() -> None:
    program = (
        "s = open_session('open_faulty', 'print'); s.reset(8, {}, 0); print(s.train(2).steps); s.close()"
    )
    with parent(program) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "2\n"


def test_an_unguarded_script_runs_once_and_hands_over_its_objects(tmp_path: Path) -> None:
    """The object refers to a function of the script and to a module beside it; the directory is another."""
    scripts, elsewhere = tmp_path / "scripts", tmp_path / "elsewhere"
    scripts.mkdir()
    elsewhere.mkdir()
    (scripts / "neighbour.py").write_text("def title(name):\n    return name.title()\n")
    script = scripts / "unguarded.py"
    script.write_text(
        "import sys, cloudpickle, neighbour\n"
        "from tests.execution.sessions import TellingSession\n"
        + _OPEN
        + "print('top level', len(sys.argv))\n"
        "suffix = '-net'\n"
        "def build():\n"
        "    return TellingSession(neighbour.title('small') + suffix)\n"
        "session = open_session('open_pickled', pickled=cloudpickle.dumps(build))\n"
        "print(session.describe().name, session.describe().environment['directory'])\n"
        "session.close()\n"
    )
    result = subprocess.run(
        [sys.executable, str(script), "--an-argument"],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        env=environment(),
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == f"top level 2\nSmall-net {elsewhere}\n"
