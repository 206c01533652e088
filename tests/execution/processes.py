"""Looks at real processes through /proc, and waits for what happens to them."""

import time
from collections.abc import Callable
from pathlib import Path

from advisor.execution.local import ChildSession, LocalSessions
from advisor.records.requests import WorkloadReference

SESSIONS = "tests.execution.sessions"
ROOT = Path(__file__).parents[2]


def open_session(entry: str, source: str = "slope", **settings: float | str) -> ChildSession:
    return LocalSessions(f"{SESSIONS}:{entry}", WorkloadReference(source), **settings).open()  # type: ignore[arg-type]


def pid_of(session: ChildSession) -> int:
    return int(session.describe().environment["pid"])


def members(group: int) -> list[int]:
    """Return the living processes of a process group."""
    return [pid for pid, its_group, state in _processes() if its_group == group and state not in "ZX"]


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ended(group: int) -> bool:
    """Return whether a process group is gone, or goes within the time that its watchdog may take."""
    return wait_until(lambda: not members(group), timeout_s=3.0)


def _processes() -> list[tuple[int, int, str]]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found.append((int(stat.parent.name), int(fields[2]), fields[0]))
    return found
