"""What other programs do on this machine while something is timed."""

import os
import subprocess
import time
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
    """Clock, processor time of the whole machine, and of this process with its descendants (s)."""

    clock_s: float
    machine_s: float
    own_s: float


class LoadWatch:
    """Compares the processor time of the machine with that of this process and its descendants."""

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
        others_s = (ended.machine_s - self._began.machine_s) - (ended.own_s - self._began.own_s)
        return max(0.0, others_s / wall_s)

    def gpu_processes(self) -> tuple[str, ...]:
        """Return other programs on NVIDIA GPUs, as ``name (number)``; none where that is unknown."""
        try:
            listed = subprocess.run(
                _NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ()
        own = {str(process.pid) for process in _own_processes()}
        lines = (line.partition(",") for line in listed.stdout.splitlines() if line.strip())
        return tuple(f"{name.strip()} ({pid.strip()})" for pid, _, name in lines if pid.strip() not in own)


def _now() -> _Moment:
    return _Moment(time.monotonic(), _machine_s(), _own_s())


def _machine_s() -> float:
    times = psutil.cpu_times()._asdict()
    return float(sum(seconds for name, seconds in times.items() if name not in (*_IDLE, *_COUNTED_TWICE)))


def _own_s() -> float:
    total = 0.0
    for process in _own_processes():
        try:
            times = process.cpu_times()
        except psutil.Error:  # It has ended.
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _own_processes() -> list[psutil.Process]:
    own = psutil.Process(os.getpid())
    return [own, *own.children(recursive=True)]
