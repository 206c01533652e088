"""Training sessions in child processes on this machine."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.errors import AdvisorError
from advisor.execution.memory import default_memory_limit_bytes
from advisor.execution.messages import Opening, Request
from advisor.execution.process import SessionProcess
from advisor.records.description import WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Evaluation, Preparation

_CLOSE_S = 5.0


class LocalSessions:
    """Opens sessions of one workload, each in a fresh interpreter of its own.

    ``entry`` is ``module:function``; called in the child, the function takes ``reference`` and returns the
    session. ``memory_limit_bytes`` bounds the child's data segment; None takes what is available when a
    session is opened, less a margin. The child is given ``start_timeout_s`` to open its session and
    ``call_timeout_s`` for each call.
    """

    def __init__(
        self,
        entry: str,
        reference: WorkloadReference,
        memory_limit_bytes: int | None = None,
        start_timeout_s: float = 300.0,
        call_timeout_s: float = 3600.0,
    ) -> None:
        path = tuple(str(Path(folder).absolute()) for folder in (*sys.path, ""))
        self._opening = Opening(entry, reference, memory_limit_bytes, path)
        self._start_timeout_s = start_timeout_s
        self._call_timeout_s = call_timeout_s

    def open(self) -> "ChildSession":
        """Start a child and return its session once that is open.

        Raises what opening raised in the child, and :class:`~advisor.errors.SessionError` if the child
        cannot be started or ends; there is no other way to run.
        """
        limit = self._opening.memory_limit_bytes
        process = SessionProcess(
            replace(self._opening, memory_limit_bytes=limit or default_memory_limit_bytes())
        )
        try:
            process.wait_until_open(self._start_timeout_s)
        except AdvisorError:
            process.kill()
            raise
        return ChildSession(process, self._call_timeout_s)


class ChildSession:
    """A :class:`~advisor.workflows.ports.TrainingSession` in a child process.

    What its methods raise is what they raised in the child; a call that outlasts its deadline raises
    :class:`~advisor.errors.SessionTimeoutError` and ends the child.
    """

    def __init__(self, process: SessionProcess, call_timeout_s: float) -> None:
        self._process = process
        self._call_timeout_s = call_timeout_s

    def describe(self) -> WorkloadDescription:
        """Load and check the workload, and say what it is."""
        description: WorkloadDescription = self._call("describe")
        return description

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        """Start again from new weights; programs are rebuilt only where the model reads a changed value."""
        preparation: Preparation = self._call("reset", batch_size, dict(hyperparameters), seed)
        return preparation

    def train(self, steps: int) -> BlockTiming:
        """Take ``steps`` optimizer steps and return when the device has finished."""
        timing: BlockTiming = self._call("train", steps)
        return timing

    def evaluate(self, split: str) -> Evaluation:
        """Return the metrics of a whole split, exact on a partial last batch."""
        evaluation: Evaluation = self._call("evaluate", split)
        return evaluation

    def peak_memory_bytes(self) -> int | None:
        """Return the peak memory of the session so far, or None where it cannot be known."""
        peak: int | None = self._call("peak_memory_bytes")
        return peak

    def save(self, path: Path) -> None:
        """Write weights, optimizer state and random state to the file ``path``, atomically."""
        self._call("save", path.absolute())

    def restore(self, path: Path) -> None:
        """Read back what :meth:`save` wrote, after a reset with the same batch size and hyperparameters."""
        self._call("restore", path.absolute())

    def close(self) -> None:
        """End the session and its process, by force if need be; closing twice is allowed."""
        with suppress(AdvisorError):
            self._process.call(Request("close"), _CLOSE_S)
            self._process.wait(_CLOSE_S)
        self._process.kill()

    def _call(self, method: str, *arguments: object) -> Any:
        return self._process.call(Request(method, arguments), self._call_timeout_s)
