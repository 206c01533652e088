"""What other programs do on this machine while something is timed."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

_LEAST_WINDOW_S = 0.2
"""Processor times are counted in hundredths of a second: a shorter window says nothing."""
_IDLE = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")  # Linux has them in user and nice as well
_NVIDIA_SMI = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
_NVIDIA_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class _Moment:
    """Clock, time that the processors were busy, and time of this process with its descendants (s)."""

    clock_s: float
    busy_s: float
    own_s: float


class LoadWatch:
    """Compares the time that processors are busy with that of this process and its descendants.

    The processors are those that this process may run on: what happens on others takes nothing from it.
    """

    def __init__(self) -> None:
        self._began = _now()

    def start(self) -> None:
        """Begin to watch."""
        self._began = _now()

    def competing_cpus(self) -> float | None:
        """Return how many processors other programs kept busy since the start; None where that is unknown.

        Time that a virtual machine was denied counts as theirs. Where a descendant ended in between, its
        time may be missed, and is then counted as theirs too.
        """
        ended = _now()
        wall_s = ended.clock_s - self._began.clock_s
        if wall_s < _LEAST_WINDOW_S:
            return None
        others_s = (ended.busy_s - self._began.busy_s) - (ended.own_s - self._began.own_s)
        return max(0.0, others_s / wall_s)

    def gpu_processes(self) -> tuple[str, ...]:
        """Return other programs on NVIDIA GPUs, as ``name (number)``; none where that is unknown.

        A container may be told the numbers of its host. One that no process has here says nothing: it may
        be our own under another number.
        """
        try:
            listed = subprocess.run(
                _NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ()
        own = {str(process.pid) for process in _own_processes()}
        lines = (line.partition(",") for line in listed.stdout.splitlines())
        named = ((pid.strip(), name.strip()) for pid, _, name in lines)
        return tuple(f"{name} ({pid})" for pid, name in named if pid not in own and _is_here(pid))


def _now() -> _Moment:
    return _Moment(time.monotonic(), _busy_s(), _own_s())


def _busy_s() -> float:
    """Return the time that the processors were busy on which this process may run."""
    times = psutil.cpu_times(percpu=True)
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(times))
    return sum(_busy_of(one._asdict()) for processor, one in enumerate(times) if processor in allowed)


def _busy_of(times: Mapping[str, float]) -> float:
    return sum(seconds for name, seconds in times.items() if name not in (*_IDLE, *_COUNTED_TWICE))


def _own_s() -> float:
    total = 0.0
    for process in _own_processes():
        try:
            times = process.cpu_times()
        except psutil.Error:  # It has ended.
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _is_here(pid: str) -> bool:
    return pid.isdecimal() and bool(psutil.pid_exists(int(pid)))


def _own_processes() -> list[psutil.Process]:
    own = psutil.Process(os.getpid())
    return [own, *own.children(recursive=True)]
