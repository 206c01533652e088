"""Why a session failed: exceptions, exit statuses and signals turned into errors, by table."""

import re
import signal
import traceback

from advisor.errors import AdvisorError, OutOfMemoryError, SessionError, SuspectedMemoryError
from advisor.records.memory_faults import is_out_of_memory, speaks_of_memory

# Signals that, without a word from the dying process, most often mean that memory ran out.
_SUSPECT_ALWAYS = {signal.SIGKILL: "the system ends a process so when memory runs out"}
_SUSPECT_UNDER_A_LIMIT = {
    signal.SIGSEGV: "a library that is refused memory often dies so",
    signal.SIGBUS: "a library that is refused memory often dies so",
}

_LOGGED = re.compile(r"[IWE]\d{4} \d\d:|WARNING: All log messages|To enable the following instructions")
_HEADLINE_CHARACTERS = 300
_TRACEBACK_CHARACTERS = 4000
_SHELL_SIGNAL_BASE = 128


def fault_of_exception(error: BaseException) -> AdvisorError:
    """Return ``error`` if it is the advisor's own, else what it means, with the end of its traceback."""
    if isinstance(error, AdvisorError):
        return error
    text = f"{type(error).__name__}: {error}"
    detail = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARACTERS:]
    if is_out_of_memory(error):
        return OutOfMemoryError(f"The training session ran out of memory: {_headline(text)}", detail)
    return SessionError(f"The training session failed: {_headline(text)}", detail)


def fault_of_death(
    doing: str, exit_status: int | None, output: str, memory_limit_bytes: int | None
) -> SessionError:
    """Return what the end of a child during ``doing`` (words) means.

    ``exit_status`` is negative for a signal, as ``subprocess`` gives it, and None for a child that hung
    up but lived on. ``output`` is the end of what it wrote.
    """
    how, number = _manner(exit_status)
    detail = f"{how}\n{output}".strip()
    if speaks_of_memory(output):
        return OutOfMemoryError(
            f"The training session ran out of memory and died during {doing} ({how}).", detail
        )
    why = _suspicion(number, memory_limit_bytes)
    if why:
        return SuspectedMemoryError(
            f"The training session died during {doing} ({how}); out of memory is suspected, since {why}. "
            f"{_last_words(output)}",
            detail,
        )
    return SessionError(f"The training session died during {doing} ({how}). {_last_words(output)}", detail)


def _last_words(output: str) -> str:
    """Return the line of ``output`` that tells most of a death, in a sentence."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _LOGGED.match(line)]
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    if not lines:
        return "It said nothing; run the workload's file by itself to see more."
    return f"Its last words: {_headline((fatal or lines[-1:])[0])}"


def _suspicion(number: int | None, memory_limit_bytes: int | None) -> str | None:
    if number in _SUSPECT_ALWAYS:
        return _SUSPECT_ALWAYS[signal.Signals(number)]
    if number in _SUSPECT_UNDER_A_LIMIT and memory_limit_bytes is not None:
        return (
            f"{_SUSPECT_UNDER_A_LIMIT[signal.Signals(number)]} (limit {memory_limit_bytes / 2**30:.1f} GiB)"
        )
    return None


def _manner(exit_status: int | None) -> tuple[str, int | None]:
    """Return how a child ended, in words, and the number of the signal that ended it, if one did."""
    if exit_status is None:
        return "it closed its connection", None
    number = -exit_status if exit_status < 0 else exit_status - _SHELL_SIGNAL_BASE
    if number not in set(signal.Signals):
        return f"exit status {exit_status}", None
    name = signal.Signals(number).name
    return (f"signal {name}" if exit_status < 0 else f"exit status {exit_status}, signal {name}"), number


def _headline(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line if len(line) <= _HEADLINE_CHARACTERS else line[: _HEADLINE_CHARACTERS - 1] + "…"
