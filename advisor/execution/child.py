"""The child's side: a fresh interpreter that opens one session and answers calls until told to close.

Started as ``python -m advisor.execution.child CONNECTION LIFELINE OPENING``, three file descriptors.
"""

import atexit
import faulthandler
import os
import pickle
import resource
import select
import signal
import sys
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from advisor.execution.faults import fault_of_exception
from advisor.execution.messages import Failure, Opening, Reply, Request
from advisor.workflows.ports import TrainingSession

_WATCH_S = 1.0


def main() -> None:
    """Serve one session over the file descriptors named on the command line."""
    connection_fd, lifeline_fd, opening_fd = (int(argument) for argument in sys.argv[1:])
    faulthandler.enable(all_threads=False)  # So that the output of a crash ends with the line that caused it.
    del sys.argv[1:]  # A workload's file may read its own.
    for descriptor in (connection_fd, lifeline_fd, opening_fd):
        os.set_inheritable(descriptor, False)
    _start_watchdog(lifeline_fd, (0, 1, 2, connection_fd, opening_fd))
    with suppress(OSError):  # Linux alone has it.
        Path("/proc/self/oom_score_adj").write_text("1000")
    with os.fdopen(opening_fd, "rb") as file:
        opening: Opening = pickle.load(file)
    with Connection(connection_fd) as connection, suppress(EOFError, ConnectionError):
        _serve(connection, opening)
    atexit._run_exitfuncs()
    os._exit(0)  # Taking a large interpreter down in order takes a second, and serves nobody.


def _serve(connection: Connection, opening: Opening) -> None:
    try:
        session = _open(opening)
    except BaseException as error:  # Whatever it is, it is told and does not end in silence.
        connection.send(Failure.of(fault_of_exception(error)))
        return
    connection.send(Reply(None))
    method = ""
    while method != "close":
        request: Request = connection.recv()
        method = request.method
        connection.send_bytes(_answer(session, request))


def _open(opening: Opening) -> TrainingSession:
    _limit_memory(opening.memory_limit_bytes)
    sys.path.extend(entry for entry in opening.import_path if entry not in sys.path)
    module, _, function = opening.entry.partition(":")
    session: TrainingSession = getattr(import_module(module), function)(opening.reference)
    return session


def _answer(session: TrainingSession, request: Request) -> bytes:
    """Return the pickled outcome; a value that cannot be pickled is a failure of the call."""
    try:
        return pickle.dumps(Reply(getattr(session, request.method)(*request.arguments)))
    except BaseException as error:
        return pickle.dumps(Failure.of(fault_of_exception(error)))


def _limit_memory(limit_bytes: int | None) -> None:
    """Make allocations beyond the limit fail here, before the system starts to end processes."""
    if limit_bytes is None:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _start_watchdog(lifeline_fd: int, others: tuple[int, ...]) -> None:
    """Start the process that ends this whole group once the parent, or this process, has ended.

    The parent holds the other end of the lifeline and never writes to it. A thread here would not do: it
    would wait for the interpreter's lock, which a busy session may hold for minutes.
    """
    session = os.getpid()
    if os.fork():
        os.close(lifeline_fd)
        return
    try:
        for descriptor in others:
            os.close(descriptor)
        poll = select.poll()
        poll.register(lifeline_fd)
        while os.getppid() == session and not poll.poll(_WATCH_S * 1000):
            pass
    finally:
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
