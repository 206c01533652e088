"""One child interpreter as its parent sees it: messages, deadlines, output, and a certain end."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO

from advisor.errors import SessionError, SessionTimeoutError
from advisor.execution.faults import fault_of_death
from advisor.execution.messages import Failure, Opening, Reply, Request

_OUTPUT_BYTES = 16384
_EXIT_S = 5.0  # for a child that hung up or was killed to be gone
_DRAIN_S = 2.0
_NOISE = "Extension modules: "  # what the fault handler adds after a crash, often several thousand characters

# The write ends that keep children alive. A fork of the parent must not hold them open after it.
_LIFELINES: "weakref.WeakSet[Connection]" = weakref.WeakSet()


class SessionProcess:
    """A child interpreter in a group of its own, which is ended with everything it started.

    It is ended by :meth:`kill`, on garbage collection, at exit, and by its own watchdog when this process
    dies in any way.
    """

    def __init__(self, opening: Opening) -> None:
        self._memory_limit_bytes = opening.memory_limit_bytes
        self._connection, child_end = Pipe()
        lifeline_end, lifeline = Pipe(duplex=False)
        _LIFELINES.add(lifeline)
        with child_end, lifeline_end, tempfile.TemporaryFile() as file:
            # Not over the connection, where a large workload and a stuck child would block for ever.
            pickle.dump(opening, file)
            file.seek(0)
            child = _start((child_end.fileno(), lifeline_end.fileno(), file.fileno()))
        self._child = child
        self._output = _OutputTail(child.stdout)
        self._end = weakref.finalize(self, _end, child, (self._connection, lifeline), os.getpid())

    def receive(self, timeout_s: float, call: str) -> object:
        """Return the value of the next reply, or raise the error that it tells of.

        Silence beyond ``timeout_s`` raises :class:`SessionTimeoutError`; a death raises what it means.
        Either, and an interruption, ends the child.
        """
        try:
            if not self._connection.poll(timeout_s):
                raise self._silence(timeout_s, call)
            reply: Reply | Failure = self._connection.recv()
        except (EOFError, OSError):
            raise self._death(call) from None
        except BaseException:
            self.kill()
            raise
        if isinstance(reply, Failure):
            raise reply.error()
        return reply.value

    def call(self, request: Request, timeout_s: float) -> object:
        """Send ``request`` and return what :meth:`receive` returns."""
        if not self._end.alive:
            raise SessionError(
                f"{request.method} was called on a training session that has ended; open a new one."
            )
        with suppress(ConnectionError):  # What a child left behind before it died is still to be read.
            self._connection.send(request)
        return self.receive(timeout_s, request.method)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the child still runs after ``timeout_s``."""
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the child and everything that it started; doing so twice is allowed."""
        self._end()

    def _silence(self, timeout_s: float, call: str) -> SessionTimeoutError:
        self.kill()
        return SessionTimeoutError(
            f"The training session did not finish {call} within {timeout_s:g} s and was ended; "
            "look for what hangs in the workload, or give it less to do at a time.",
            self._output.text(),
        )

    def _death(self, call: str) -> SessionError:
        exit_status = self.wait(_EXIT_S)
        self.kill()
        return fault_of_death(call, exit_status, self._output.text(), self._memory_limit_bytes)


class _OutputTail:
    """Reads a stream to its end on a thread of its own and remembers the last of it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._tail = b""
        self._thread = threading.Thread(target=self._drain, name="session output", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the last output of a child that has ended."""
        self._thread.join(_DRAIN_S)
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return "\n".join(line for line in lines if not line.startswith(_NOISE))

    def _drain(self) -> None:
        with self._stream as stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + chunk)[-_OUTPUT_BYTES:]


def _start(descriptors: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    """Start a child that inherits ``descriptors``; -u saves the last words of a crash."""
    if not sys.executable:
        raise SessionError("A training session needs a Python interpreter to start, and none is known here.")
    command = [sys.executable, "-u", "-m", "advisor.execution.child"]
    try:
        return subprocess.Popen(
            command + [str(descriptor) for descriptor in descriptors],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as error:
        raise SessionError(f"The training session could not be started: {error}.") from error


def _end(child: subprocess.Popen[bytes], connections: tuple[Connection, ...], owner: int) -> None:
    if os.getpid() != owner:
        return  # A fork of the parent inherits its memory, and with it this duty, but not the child.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_EXIT_S)
    for connection in connections:
        connection.close()


def _release_lifelines() -> None:
    for lifeline in _LIFELINES:
        lifeline.close()


os.register_at_fork(after_in_child=_release_lifelines)
