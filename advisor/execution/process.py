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

from advisor.errors import AdvisorError, SessionError, SessionTimeoutError
from advisor.execution.faults import fault_of_death
from advisor.execution.messages import Failure, Opening, Reply, Request

_OUTPUT_BYTES = 16384
_EXIT_S = 5.0  # for a child that hung up or was killed to be gone
_DRAIN_S = 2.0
_NOISE = "Extension modules: "  # what the fault handler adds after a crash, often several thousand characters

# What a session is doing while it answers a call, as a person says it.
_DOING = {
    "describe": "loading and checking the workload",
    "reset": "building the model",
    "train": "a block of training steps",
    "train_part": "a block of steps of one part of the training",
    "diagnose": "examining the input pipeline",
    "profile": "profiling a few steps",
    "evaluate": "an evaluation",
    "gradient_norms": "measuring gradients",
    "memory": "looking up the memory in use",
    "save": "saving a checkpoint",
    "restore": "restoring a checkpoint",
    "close": "closing",
}

# The write ends that keep children alive. A fork of the parent must not hold them open after it.
_LIFELINES: "weakref.WeakSet[Connection]" = weakref.WeakSet()


class SessionProcess:
    """A child interpreter in a group of its own, which is ended with everything it started.

    It is ended by :meth:`kill`, on garbage collection, at exit, and by its own watchdog when this process
    dies in any way. ``timeout_advice`` ends the sentence that tells of a call beyond its deadline.
    """

    def __init__(self, opening: Opening, timeout_advice: str = "") -> None:
        try:
            child, self._connection, lifeline = _start(opening)
        except OSError as error:
            raise SessionError(f"The training session could not be started: {error}.") from error
        self._memory_limit_bytes = opening.memory_limit_bytes
        self._timeout_advice = timeout_advice
        self._child = child
        self._output = _OutputTail(child.stdout)
        self._end = weakref.finalize(self, _end, child, (self._connection, lifeline), os.getpid())

    def wait_until_open(self, timeout_s: float) -> None:
        """Return once the child has opened its session; raises as :meth:`call`."""
        self._exchange("starting", None, timeout_s)

    def call(self, request: Request, timeout_s: float) -> object:
        """Return what the session answers to ``request``, or raise the error that it answers with.

        Silence beyond ``timeout_s`` raises :class:`SessionTimeoutError`, a death what that means; either,
        and an interruption, ends the child.
        """
        if not self._end.alive:
            raise SessionError(
                f"{request.method} was called on a training session that has ended; open a new one."
            )
        return self._exchange(_DOING[request.method], request, timeout_s)

    def _exchange(self, doing: str, request: Request | None, timeout_s: float) -> object:
        try:
            if request is not None:
                with suppress(ConnectionError):  # What a child said before it died is still to be read.
                    self._connection.send(request)
            if not self._connection.poll(timeout_s):
                raise self._silence(doing, timeout_s, self._timeout_advice if request else "")
            reply: Reply | Failure = self._connection.recv()
        except (EOFError, OSError):
            raise self._death(doing) from None
        except AdvisorError:
            raise
        except Exception as error:
            self.kill()
            raise SessionError(
                f"What the training session answered after {doing} cannot be read here ({error}). Use plain "
                "numbers, texts and names in the workload's target and search_space."
            ) from error
        except BaseException:
            self.kill()
            raise
        if isinstance(reply, Failure):
            raise reply.error()
        return reply.value

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the child still runs after ``timeout_s``."""
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the child and everything that it started; doing so twice is allowed."""
        self._end()

    def _silence(self, doing: str, timeout_s: float, advice: str) -> SessionTimeoutError:
        self.kill()
        return SessionTimeoutError(
            f"The training session did not finish {doing} within {timeout_s:g} s and was ended; "
            f"look for what hangs in the workload, or {advice or 'give it less to do at a time'}.",
            self._output.text(),
        )

    def _death(self, doing: str) -> SessionError:
        exit_status = self.wait(_EXIT_S)
        self.kill()
        return fault_of_death(doing, exit_status, self._output.text(), self._memory_limit_bytes)


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


def _start(opening: Opening) -> tuple[subprocess.Popen[bytes], Connection, Connection]:
    """Start a child; return it with the connection to it and the lifeline that keeps it alive."""
    if not sys.executable:
        raise SessionError("A training session needs a Python interpreter to start, and none is known here.")
    connection, child_end = Pipe()
    lifeline_end, lifeline = Pipe(duplex=False)
    _LIFELINES.add(lifeline)
    with child_end, lifeline_end, tempfile.TemporaryFile() as file:
        # Not over the connection, where a large workload and a stuck child would block for ever.
        pickle.dump(opening, file)
        file.seek(0)
        inherited = (child_end.fileno(), lifeline_end.fileno(), file.fileno())
        child = subprocess.Popen(
            # -u saves the last words of a crash; with -P no file in this folder stands in for a module.
            [sys.executable, "-u", "-P", "-m", "advisor.execution.child", *map(str, inherited)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
            start_new_session=True,
        )
    return child, connection, lifeline


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
