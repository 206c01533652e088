"""What the use cases need of the outside; every implementation passes the contract suite of its port."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from advisor.records.bottleneck import InputDiagnosis
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.measurement import BatchMeasurement, MeasurementRun
from advisor.records.recommendation import Advice
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.session import BlockTiming, Evaluation, GradientNorms, MemoryUse, Preparation, StepPart
from advisor.records.trials import CurvePoint, Study, Trial, TrialPlan, TrialState


class TrainingSession(Protocol):
    """A model under training: run some optimizer steps and look.

    Every call raises :class:`~advisor.errors.WorkloadError` for a fault of the workload,
    :class:`~advisor.errors.OutOfMemoryError` where memory ran out, and
    :class:`~advisor.errors.SessionError` for any other failure.
    """

    def describe(self) -> WorkloadDescription:
        """Load and check the workload, and say what it is."""

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        """Start again from new weights; programs are rebuilt only where the model reads a changed value.

        Hyperparameters that are not named take their defaults. ``seed`` decides initialization, order of
        examples and every random operation.
        """

    def train(self, steps: int) -> BlockTiming:
        """Take ``steps`` optimizer steps and return when the device has finished."""

    def evaluate(self, split: str) -> Evaluation:
        """Return the metrics of a whole split, exact on a partial last batch."""

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        """Take ``steps`` steps of one part alone, and say how long they took.

        Trained weights are spoiled: reset before training on.
        """

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        """Say what the stages of the input pipeline cost, and try what would help.

        Each trial is timed for about ``seconds``. With ``input_workers`` above 0 one of them is a pipeline
        of so many producers. Trained weights are spoiled: reset before training on.
        """

    def profile(self, folder: Path, steps: int) -> Sequence[Path]:
        """Trace ``steps`` steps into files below ``folder``, and return these.

        Raises :class:`~advisor.errors.SessionError` where the profiler is not available.
        """

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        """Return the squared norms of the gradients of ``batches`` training batches at the present weights.

        The batches come from a stream of their own; an odd one goes without its last example. The loss is
        that of a training step, penalties included. Training goes on afterwards as if it had not happened.
        Raises :class:`~advisor.errors.SessionError` where the gradient of half a batch cannot be had: at
        batch size 1, and for a model with a training step of its own.
        """

    def memory(self) -> MemoryUse:
        """Return the memory used since the last reset."""

    def save(self, path: Path) -> None:
        """Write weights, optimizer state and random state to the file ``path``, atomically."""

    def restore(self, path: Path) -> None:
        """Read back what :meth:`save` wrote, after a reset with the same batch size and hyperparameters."""

    def close(self) -> None:
        """End the session; closing twice is allowed."""


class SessionFactory(Protocol):
    """Opens training sessions of one workload."""

    def open(self) -> TrainingSession:
        """Return a fresh session, isolated from every other."""


class LoadWatch(Protocol):
    """Watches what other programs do on this machine."""

    def start(self) -> None:
        """Begin to watch."""

    def competing_cpus(self) -> float | None:
        """Return how many processors other programs kept busy since the start; None where that is unknown."""

    def gpu_processes(self) -> tuple[str, ...]:
        """Return other programs on the GPUs, as ``name (number)``; none where that is unknown."""


class MeasurementStore(Protocol):
    """Remembers measured sweeps."""

    def add_measurements(
        self,
        workload: str,
        fingerprint: Fingerprint,
        configuration: Configuration,
        environment: Mapping[str, str],
        measurements: Sequence[BatchMeasurement],
    ) -> None:
        """Record measured batch sizes; a batch size measured again replaces the older one in reads."""

    def latest_measurements(self, workload: str) -> Sequence[MeasurementRun]:
        """Return one run for each timing fingerprint of ``workload``, the newest first."""


class StudyStore(Protocol):
    """Remembers studies, trials and curves; every call commits before it returns."""

    def open_study(self, study: Study) -> Study:
        """Record ``study`` unless one of its name exists; return the recorded one, created_at filled in."""

    def studies(self, workload: str | None = None) -> Sequence[Study]:
        """Return recorded studies, oldest first."""

    def set_note(self, study: str, note: str) -> None:
        """Replace the note of a study."""

    def trials(self, study: str) -> Sequence[Trial]:
        """Return the trials of a study with their curves, by number.

        A trial found running whose owner no longer lives is recorded as interrupted first.
        """

    def start_trial(self, study: str, number: int | None, plan: TrialPlan) -> int:
        """Record a running trial, owned by this process, and return its number.

        Where ``number`` is None it gets the next free one, whoever else starts trials at the same time.
        """

    def record_point(self, study: str, number: int, point: CurvePoint) -> None:
        """Record one evaluation of a running trial."""

    def finish_trial(
        self, study: str, number: int, state: TrialState, reason: str, checkpoint: str | None = None
    ) -> None:
        """Record how a trial ended."""


class AdviceStore(Protocol):
    """Remembers descriptions and advice."""

    def save_description(self, description: WorkloadDescription) -> None:
        """Record the newest description of a workload."""

    def descriptions(self) -> Sequence[WorkloadDescription]:
        """Return the newest description of every workload, the most recently used first."""

    def save_advice(self, advice: Advice) -> None:
        """Record the newest advice for a workload."""

    def latest_advice(self, workload: str) -> Advice | None:
        """Return the newest advice for a workload."""


class Store(MeasurementStore, StudyStore, AdviceStore, Protocol):
    """The whole memory."""


class StudyBoard(Protocol):
    """Studies as Optuna keeps them: sampling, and what its dashboard shows."""

    def open(self, study: Study, search_space: SearchSpace, seed: int) -> None:
        """Create the Optuna study of that name unless it exists."""

    def ask(self, study: str) -> tuple[int, Mapping[str, HyperparameterValue]]:
        """Start a trial where the sampler proposes; return its number and values."""

    def ask_at(self, study: str, hyperparameters: Mapping[str, HyperparameterValue]) -> int:
        """Start a trial at given values; return its number."""

    def add(self, study: str, trial: Trial, value: float | None) -> None:
        """Add a finished trial with its curve, as :meth:`ask_at` and :meth:`tell` would have left it.

        Its number on the board is the next free one; the trial's own number is kept as an attribute. A trial
        whose own number the board already has is left as it is.
        """

    def report(self, study: str, number: int, step: int, value: float) -> None:
        """Show an intermediate value of a running trial."""

    def tell(self, study: str, number: int, state: TrialState, value: float | None, reason: str) -> None:
        """End a trial; an infeasible one is told to the sampler as such, with its reason.

        Telling an ended trial again that it ended so changes nothing; telling another state raises
        :class:`~advisor.errors.StorageError`.
        """

    def set_note(self, study: str, note: str) -> None:
        """Write the note that the dashboard shows on the study."""


class Progress(Protocol):
    """Tells a waiting person what happens."""

    def say(self, message: str) -> None:
        """Write one message."""

    def advance(self, task: str, done: float, total: float | None) -> None:
        """Show that ``done`` of ``total`` units of ``task`` are finished; ``total`` None is unknown."""
