"""Which process runs a trial, and whether it still lives."""

import os
import socket
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from advisor.storage.codec import UnreadableError

_START_TOLERANCE_S = 1.5  # the machine's own start is known to a second only


def this_process() -> str:
    """Return ``HOST/PID/START`` of the calling process; START is in seconds since the machine started."""
    return f"{_host()}/{os.getpid()}/{_start_s(psutil.Process()):.2f}"


def is_dead(owner: str) -> bool:
    """Return whether ``owner`` ran on this host and runs no longer; other hosts cannot be looked at."""
    host, pid, start_s = _parts(owner)
    if host != _host():
        return False
    try:
        process = psutil.Process(pid)
        another = abs(_start_s(process) - start_s) > _START_TOLERANCE_S
        return another or bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def shown(owner: str) -> str:
    """Return ``owner`` as a person reads it."""
    host, pid, _ = _parts(owner)
    return f"process {pid} on {host.partition(':')[0]}"


def _parts(owner: str) -> tuple[str, int, float]:
    try:
        host, pid, start_s = owner.rsplit("/", 2)
        return host, int(pid), float(start_s)
    except ValueError as error:
        raise UnreadableError("the owner of a trial") from error


def _host() -> str:
    """Return a name that is shared by the processes that see one another's process numbers.

    Containers may share a host's name without sharing its processes, so on Linux the process namespace is
    part of it.
    """
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()}:{namespace.stat().st_ino}" if namespace.exists() else socket.gethostname()


def _start_s(process: psutil.Process) -> float:
    # Counted from the machine's start, which changes of the clock leave alone.
    return float(process.create_time() - psutil.boot_time())
