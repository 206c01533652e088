"""Light sessions for real child processes: one that trains honestly, and ones that fail in every way."""

import ctypes
import json
import math
import multiprocessing
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import cloudpickle

from advisor.errors import OutOfMemoryError, SessionError, WorkloadError
from advisor.records.bottleneck import InputDiagnosis
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Evaluation, GradientNorms, MemoryUse, Preparation, StepPart
from advisor.records.target import Target

_TRUE_SLOPE = 3.0
_EXAMPLES = 64
_DEFAULT_RATE = 0.1


class SlopeSession:
    """Fits the slope of a noisy line by stochastic gradient descent, in plain Python."""

    def __init__(self, name: str = "slope") -> None:
        self._name = name
        noise = Random(0)
        inputs = [noise.gauss(0, 1) for _ in range(2 * _EXAMPLES)]
        pairs = [(x, _TRUE_SLOPE * x + 0.1 * noise.gauss(0, 1)) for x in inputs]
        self._splits = {"train": pairs[:_EXAMPLES], "validation": pairs[_EXAMPLES:]}
        self._slope, self._step, self._batch_size, self._rate = 0.0, 0, 0, _DEFAULT_RATE
        self._initial_loss = self._loss("validation")
        self._random = Random(0)

    def describe(self) -> WorkloadDescription:
        return WorkloadDescription(
            name=self._name,
            fingerprint=Fingerprint("line", "sgd", "squared error", "64", "0", "loss", "cpu", "1"),
            target=Target("loss", at_most=0.02),
            optimizer="sgd",
            optimizer_hyperparameters={"learning_rate": _DEFAULT_RATE},
            search_space={},
            examples={name: len(pairs) for name, pairs in self._splits.items()},
            metrics=("loss",),
            initial_metrics={"loss": self._initial_loss},
            parameter_count=1,
            configuration=Configuration(),
            environment=self._environment(),
        )

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        if not 1 <= batch_size <= _EXAMPLES:
            raise WorkloadError(
                f"batch size {batch_size} is not between 1 and the {_EXAMPLES} training examples."
            )
        if unknown := hyperparameters.keys() - {"learning_rate"}:
            raise WorkloadError(f"no hyperparameters {sorted(unknown)}; there is 'learning_rate'.")
        self._random = Random(seed)
        self._slope, self._step, self._batch_size = self._random.gauss(0, 1), 0, batch_size
        self._rate = float(hyperparameters.get("learning_rate", _DEFAULT_RATE))
        return Preparation(rebuilt=False, compile_s=0.0)

    def train(self, steps: int) -> BlockTiming:
        if not self._batch_size:
            raise SessionError("nothing to train yet; call reset first.")
        started, losses = time.perf_counter(), []
        for _ in range(steps):
            batch = self._batch()
            errors = [self._slope * x - y for x, y in batch]
            losses.append(sum(error * error for error in errors) / len(batch))
            self._slope -= self._rate * self._gradient(batch)
        self._step += steps
        return BlockTiming(steps, time.perf_counter() - started, sum(losses) / steps)

    def evaluate(self, split: str) -> Evaluation:
        if split not in self._splits:
            raise WorkloadError(f"no split {split!r}; there are {', '.join(self._splits)}.")
        started = time.perf_counter()
        metrics = {"loss": self._loss(split)}
        return Evaluation(self._step, split, metrics, len(self._splits[split]), time.perf_counter() - started)

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        if part is not StepPart.INPUT:
            return self.train(steps)
        started = time.perf_counter()
        for _ in range(steps):
            self._batch()
        return BlockTiming(steps, time.perf_counter() - started, math.nan)

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        return InputDiagnosis(self._batch_size, input_workers=input_workers)

    def profile(self, folder: Path, steps: int) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "profile.json"
        path.write_text(json.dumps(self.train(steps).seconds))
        return [path]

    def gradient_norms(self, batches: int) -> list[GradientNorms]:
        if batches < 1:
            raise SessionError(f"{batches} batches were asked for; ask for at least 1.")
        if self._batch_size == 1:
            raise SessionError("a batch of 1 example has no halves.")
        random, half = Random(0), self._batch_size // 2
        found = []
        for _ in range(batches):
            batch = random.sample(self._splits["train"], 2 * half)
            first, second = self._gradient(batch[:half]), self._gradient(batch[half:])
            found.append(GradientNorms(2 * half, ((first + second) / 2) ** 2, (first**2, second**2)))
        return found

    def memory(self) -> MemoryUse:
        return MemoryUse(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(pickle.dumps((self._slope, self._step, self._random.getstate())))
        partial.replace(path)

    def restore(self, path: Path) -> None:
        if not path.exists():
            raise SessionError(f"there is no checkpoint {path}.")
        self._slope, self._step, state = pickle.loads(path.read_bytes())
        self._random.setstate(state)

    def close(self) -> None:
        pass

    def _batch(self) -> list[tuple[float, float]]:
        return self._random.sample(self._splits["train"], self._batch_size)

    def _gradient(self, batch: list[tuple[float, float]]) -> float:
        return 2 * sum((self._slope * x - y) * x for x, y in batch) / len(batch)

    def _environment(self) -> dict[str, str]:
        return {}

    def _loss(self, split: str) -> float:
        errors = [self._slope * x - y for x, y in self._splits[split]]
        return sum(error * error for error in errors) / len(errors)


class TellingSession(SlopeSession):
    """Tells of the process that it is in."""

    def _environment(self) -> dict[str, str]:
        return {
            "pid": str(os.getpid()),
            "arguments": repr(sys.argv[1:]),
            "directory": str(Path.cwd()),
            "data_limit_bytes": str(resource.getrlimit(resource.RLIMIT_DATA)[0]),
            "oom_score_adj": Path("/proc/self/oom_score_adj").read_text().strip(),
        }


class FaultySession(TellingSession):
    """Misbehaves in ``train`` as its name says."""

    def train(self, steps: int) -> BlockTiming:
        started = time.perf_counter()
        for _ in range(steps if self._name == "doze" else 1):
            _FAULTS[self._name]()
        return replace(super().train(steps), seconds=time.perf_counter() - started)


class StubbornSession(TellingSession):
    """Never ends when it is asked to."""

    def close(self) -> None:
        _hang()


class CompilingSession(SlopeSession):
    """Takes more than a second for its first step, and hangs at its third."""

    def train(self, steps: int) -> BlockTiming:
        started = time.perf_counter()
        time.sleep({0: 1.2, 1: 0.0}.get(self._step, 3600))
        return replace(super().train(steps), seconds=time.perf_counter() - started)


class LateSession(TellingSession):
    """Takes a second to say what it is, as where much data is read, and to look into a step."""

    def describe(self) -> WorkloadDescription:
        time.sleep(1.0)
        return super().describe()

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        time.sleep(1.0)
        return super().diagnose(seconds, input_workers)

    def profile(self, folder: Path, steps: int) -> list[Path]:
        time.sleep(1.0)
        return super().profile(folder, steps)


class SecretiveSession(TellingSession):
    """Answers with what cannot travel."""

    def describe(self) -> WorkloadDescription:
        return lambda: None  # type: ignore[return-value]


class UserError(WorkloadError):
    """Stands for a class of the user's file, which the parent never imports."""


def open_plain(reference: WorkloadReference) -> SlopeSession:
    return SlopeSession(reference.source)


def open_slope(reference: WorkloadReference) -> TellingSession:
    return TellingSession(reference.source)


def open_faulty(reference: WorkloadReference) -> FaultySession:
    return FaultySession(reference.source)


def open_stubborn(reference: WorkloadReference) -> StubbornSession:
    return StubbornSession()


def open_compiling(reference: WorkloadReference) -> CompilingSession:
    return CompilingSession(reference.source)


def open_late(reference: WorkloadReference) -> LateSession:
    return LateSession()


def open_secretive(reference: WorkloadReference) -> SecretiveSession:
    return SecretiveSession()


def open_faultily(reference: WorkloadReference) -> SlopeSession:
    _FAULTS[reference.source]()
    return SlopeSession()


def open_pickled(reference: WorkloadReference) -> SlopeSession:
    assert reference.pickled is not None
    build: Callable[[], SlopeSession] = cloudpickle.loads(reference.pickled)
    return build()


def _hang() -> None:
    time.sleep(3600)


def _hang_with_the_interpreter_lock() -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")


def _hang_with_children() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    multiprocessing.get_context("fork").Process(target=_hang).start()
    _hang()


def _die_and_leave_children() -> None:
    multiprocessing.get_context("fork").Process(target=_hang).start()
    os.kill(os.getpid(), signal.SIGKILL)


def _flood() -> None:
    line = b"allocator: chunk at 0x7f0000000000 of size 256 next 18446744073709551615\n"
    for _ in range(50 * 2**20 // (len(line) * 1000) + 1):
        os.write(2, line * 1000)


def _flood_for_ever() -> None:
    while True:
        _flood()


def _flood_and_exit() -> None:
    print("first words")
    _flood()
    print("last words")
    os._exit(3)


def _allocate_beyond_the_limit() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    bytearray(2 * soft)


def _segfault() -> None:
    ctypes.string_at(0)


def _abort_as_the_allocator_does() -> None:
    os.write(
        2, b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
    )
    os.abort()


def _hang_up() -> None:
    os.closerange(3, 100)
    _hang()


def _raise(error: BaseException) -> Callable[[], None]:
    def fault() -> None:
        raise error

    return fault


def _leave_a_thread() -> None:
    threading.Thread(target=_hang, daemon=False).start()


_FAULTS: dict[str, Callable[[], None]] = {
    "hang": _hang,
    "doze": lambda: time.sleep(1.0),
    "hang with lock": _hang_with_the_interpreter_lock,
    "hang with children": _hang_with_children,
    "die and leave children": _die_and_leave_children,
    "flood": _flood,
    "flood for ever": _flood_for_ever,
    "flood and exit": _flood_and_exit,
    "allocate": _allocate_beyond_the_limit,
    "segfault": _segfault,
    "abort": _abort_as_the_allocator_does,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit 3": lambda: os._exit(3),
    "exit 137": lambda: os._exit(137),
    "system exit": _raise(SystemExit("the file left")),
    "hang up": _hang_up,
    "value error": _raise(ValueError("expected RESOURCE_EXHAUSTED to be handled, MemoryError")),
    "runtime error": _raise(RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")),
    "workload error": _raise(UserError("labels are out of range.")),
    "out of memory": _raise(OutOfMemoryError("too large", "said the allocator")),
    "ask": lambda: print(input("which data? ")),
    "print": lambda: print("hello from the workload"),
    "leave a thread": _leave_a_thread,
}
