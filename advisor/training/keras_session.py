"""Training sessions of Keras models on TensorFlow, on one device."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import perf_counter

from advisor.errors import SessionError
from advisor.records.bottleneck import InputDiagnosis
from advisor.records.description import WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, Evaluation, GradientNorms, MemoryUse, Preparation, StepPart
from advisor.training import devices
from advisor.training.faults import blaming_the_session, blaming_the_workload
from advisor.training.optimizers import Values
from advisor.training.problem import Problem
from advisor.training.profiling import profile
from advisor.training.program import Program
from advisor.training.randomness import valid_seed
from advisor.workflows.ports import TrainingSession

_KEPT_PROGRAMS = 4
_KEPT_BYTES = 256 * 2**20
_DESCRIPTION_SEED = 0


def open_session(reference: WorkloadReference) -> TrainingSession:
    """Return a session of the workload that ``reference`` names; it is loaded when first needed."""
    return KerasSession(reference)


class KerasSession:
    """Trains one workload; keeps a few programs, so that going back to known values rebuilds nothing."""

    def __init__(self, reference: WorkloadReference) -> None:
        devices.prepare_devices(reference.options.mixed_precision)
        self._reference = reference
        self._programs: list[Program] = []  # the one used last comes last
        self._active: Program | None = None
        self._is_closed = False

    def describe(self) -> WorkloadDescription:
        """Load and check the workload, and say what it is; a training under way is left alone."""
        self._check_open()
        return self._description

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        """Start again from new weights; build and trace only what no kept program has."""
        self._check_open()
        if self._active is not None and self._active.drop_parts():
            devices.forget_unused()  # So that they take no part in the peak that begins here.
        self._active = None
        devices.reset_peak_memory()
        self._problem.check_batch_size(batch_size)
        values, seed = self._problem.values(hyperparameters), valid_seed(seed)
        with blaming_the_session(f"preparing batch size {batch_size:,}"):
            start = perf_counter()
            program, built = self._find(values, seed)
            traced = program.prepare(batch_size, values)
            program.start(values, seed)
            compile_s = perf_counter() - start
        devices.forget_unused()
        self._active = program
        return Preparation(built or traced, compile_s if built or traced else 0.0)

    def train(self, steps: int) -> BlockTiming:
        """Take ``steps`` optimizer steps and return when the device has finished."""
        with self._stepping("training", steps) as program:
            return program.train(steps)

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        """Take ``steps`` steps of one part alone; reset before training on."""
        with self._stepping(f"running the {part.value} part of a step", steps) as program:
            return program.train_part(part, steps)

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        """Say what the stages of the input pipeline cost, and try what would help; reset afterwards."""
        with self._stepping("looking into the input pipeline") as program:
            return program.diagnose(seconds, input_workers)

    def profile(self, folder: Path, steps: int) -> Sequence[Path]:
        """Trace ``steps`` steps into files below ``folder``, and return these."""
        with self._stepping("profiling", steps) as program:
            return profile(lambda: program.train(steps), folder)

    def evaluate(self, split: str) -> Evaluation:
        """Return the metrics of a whole split; training goes on as if it had not happened."""
        program = self._training()
        self._problem.check_split(split)
        start = perf_counter()
        with blaming_the_session(f"evaluating the {split} split"):
            metrics = program.evaluate(split)
        examples = self._problem.splits[split].examples
        return Evaluation(program.step, split, metrics, examples, perf_counter() - start)

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        """Return the squared norms of gradients; training goes on as if it had not happened."""
        with self._stepping("measuring gradients") as program:
            return program.gradient_norms(batches)

    def memory(self) -> MemoryUse:
        """Return the memory used since the last reset, of the GPU or else of the process."""
        return devices.memory()

    def save(self, path: Path) -> None:
        """Write weights, optimizer state, random state and step to ``path``, atomically."""
        self._training().save(Path(path))

    def restore(self, path: Path) -> None:
        """Go on from what :meth:`save` wrote, after a reset with the same batch size and hyperparameters."""
        self._training().restore(Path(path))

    def close(self) -> None:
        """Free the models; closing twice is allowed."""
        self._is_closed, self._active = True, None
        self._programs.clear()
        self.__dict__.pop("_problem", None)
        devices.forget_unused()

    @cached_property
    def _problem(self) -> Problem:
        return Problem(self._reference)

    @cached_property
    def _description(self) -> WorkloadDescription:
        values = self._problem.values({})
        with blaming_the_workload("describing the workload"):
            program = self._problem.program(values, _DESCRIPTION_SEED)
            program.start(values, _DESCRIPTION_SEED)
            metrics = program.evaluate("validation")
        if self._active is None:
            self._keep(program)
        return self._problem.describe(program, metrics)

    def _find(self, values: Values, seed: int) -> tuple[Program, bool]:
        """Return a program that fits ``values``, and whether it had to be built."""
        known = next((program for program in self._programs if program.fits(values, seed)), None)
        program = known or self._problem.program(values, seed)
        self._keep(program)
        return program, known is None

    def _keep(self, program: Program) -> None:
        """Remember ``program`` as the one used last, and forget the oldest beyond what may be kept."""
        self._programs = [other for other in self._programs if other is not program] + [program]
        while len(self._programs) > 1 and (
            len(self._programs) > _KEPT_PROGRAMS
            or sum(kept.size_bytes for kept in self._programs) > _KEPT_BYTES
        ):
            del self._programs[0]

    @contextmanager
    def _stepping(self, doing: str, steps: int = 1) -> Iterator[Program]:
        """Give the program under training; what fails inside is a failure at its batch size."""
        program = self._training()
        if steps < 1:
            raise SessionError(f"{steps} steps were asked for; ask for at least 1.")
        with blaming_the_session(f"{doing} at batch size {program.batch_size:,}"):
            yield program

    def _training(self) -> Program:
        self._check_open()
        if self._active is None:
            raise SessionError("Nothing is under training yet: call reset first.")
        return self._active

    def _check_open(self) -> None:
        if self._is_closed:
            raise SessionError("The session is closed; open a new one.")
