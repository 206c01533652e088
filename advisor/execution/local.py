"""Training sessions in child processes on this machine."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.errors import AdvisorError
from advisor.execution.memory import limit_within_available
from advisor.execution.messages import Opening, Request
from advisor.execution.process import SessionProcess
from advisor.records.bottleneck import InputDiagnosis
from advisor.records.description import WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Evaluation, GradientNorms, MemoryUse, Preparation, StepPart

START_TIMEOUT_S = 300.0
LOAD_TIMEOUT_S = 3600.0
"""Reading the data of a workload may take long."""
CALL_TIMEOUT_S = 600.0
PATIENCE = 10
"""Steps may take so many times as long as the slowest known, before they count as a hang."""
_CLOSE_S = 5.0


class LocalSessions:
    """Opens sessions of one workload, each in a fresh interpreter of its own.

    ``entry`` is ``module:function``; called in the child, the function takes ``reference`` and returns the
    session. ``memory_limit_bytes`` bounds the child's data segment, which never gets more than is available
    when a session is opened, less a margin, nor more than ``memory_share_bytes``: what this session may take
    where others are open beside it. The child is given ``start_timeout_s`` to open its session,
    ``LOAD_TIMEOUT_S`` to describe it, at least ``CALL_TIMEOUT_S`` to diagnose or profile a step, and
    ``call_timeout_s`` for each other call, or more where steps are known to be slow. ``timeout_advice``
    says what to do about a call that outlasts its deadline, such as ``allow more with --timeout``.
    """

    def __init__(
        self,
        entry: str,
        reference: WorkloadReference,
        memory_limit_bytes: int | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        memory_share_bytes: int | None = None,
        timeout_advice: str = "",
    ) -> None:
        path = tuple(str(Path(folder).absolute()) for folder in (*sys.path, ""))
        self._opening = Opening(entry, reference, memory_limit_bytes, path)
        self._start_timeout_s = start_timeout_s
        self._call_timeout_s = call_timeout_s
        self._memory_share_bytes = memory_share_bytes
        self._timeout_advice = timeout_advice

    def open(self) -> "ChildSession":
        """Start a child and return its session once that is open.

        Raises what opening raised in the child, and :class:`~advisor.errors.SessionError` if there is too
        little memory, or the child cannot be started or ends; there is no other way to run.
        """
        limit = limit_within_available(self._opening.memory_limit_bytes, self._memory_share_bytes)
        process = SessionProcess(replace(self._opening, memory_limit_bytes=limit), self._timeout_advice)
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
        # How often each kind of step was called since the reset, and the slowest step that counts (s).
        self._paces: dict[tuple[object, ...], tuple[int, float]] = {}

    def describe(self) -> WorkloadDescription:
        """Load and check the workload, and say what it is."""
        description: WorkloadDescription = self._call("describe", timeout_s=LOAD_TIMEOUT_S)
        return description

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        """Start again from new weights; programs are rebuilt only where the model reads a changed value."""
        self._paces.clear()
        preparation: Preparation = self._call("reset", batch_size, dict(hyperparameters), seed)
        return preparation

    def train(self, steps: int) -> BlockTiming:
        """Take ``steps`` optimizer steps and return when the device has finished."""
        return self._step(steps, "train")

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        """Take ``steps`` steps of one part alone; reset before training on."""
        return self._step(steps, "train_part", part)

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        """Say what the stages of the input pipeline cost, and try what would help."""
        diagnosis: InputDiagnosis = self._call("diagnose", seconds, input_workers, timeout_s=CALL_TIMEOUT_S)
        return diagnosis

    def profile(self, folder: Path, steps: int) -> Sequence[Path]:
        """Trace ``steps`` steps into files below ``folder``, and return these."""
        files: Sequence[Path] = self._call("profile", folder.absolute(), steps, timeout_s=CALL_TIMEOUT_S)
        return files

    def evaluate(self, split: str) -> Evaluation:
        """Return the metrics of a whole split, exact on a partial last batch."""
        evaluation: Evaluation = self._call("evaluate", split)
        return evaluation

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        """Return the squared norms of gradients; each of ``batches`` takes about as long as a step."""
        _, step_s = self._paces.get(("train",), (0, 0.0))
        timeout_s = PATIENCE * batches * step_s
        norms: Sequence[GradientNorms] = self._call("gradient_norms", batches, timeout_s=timeout_s)
        return norms

    def memory(self) -> MemoryUse:
        """Return the memory used since the last reset."""
        use: MemoryUse = self._call("memory")
        return use

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

    def _step(self, steps: int, *kind: Any) -> BlockTiming:
        """Take ``steps`` steps of a ``kind``, which is a method and its other arguments.

        The first call may compile, so that its time counts only until there is another.
        """
        calls, slowest_s = self._paces.get(kind, (0, 0.0))
        timing: BlockTiming = self._call(*kind, steps, timeout_s=PATIENCE * steps * slowest_s)
        step_s = timing.seconds / timing.steps
        self._paces[kind] = calls + 1, max(slowest_s, step_s) if calls > 1 else step_s
        return timing

    def _call(self, method: str, *arguments: object, timeout_s: float = 0.0) -> Any:
        return self._process.call(Request(method, arguments), max(timeout_s, self._call_timeout_s))
