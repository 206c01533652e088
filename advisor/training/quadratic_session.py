"""Training sessions of the noisy quadratic model: nothing is trained, and every answer is exact.

They take the place of a network wherever the truth must be known. Steps cost no time; what a session
reports as seconds follows a stated model, so that every run gives the same figures.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TypeVar

import numpy as np

from advisor.analysis.quadratic import QuadraticModel, Trajectory
from advisor.errors import SessionError, WorkloadError
from advisor.records.bottleneck import InputDiagnosis
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.session import BlockTiming, Evaluation, GradientNorms, MemoryUse, Preparation, StepPart
from advisor.records.target import Target
from advisor.workflows.ports import TrainingSession

NAME = "noisy-quadratic"
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class QuadraticSettings:
    """What the sessions pretend to be.

    The computation of a step at batch size B takes ``fixed_s`` + ``per_example_s`` × B, its input
    ``input_share`` times as long, and the step the longer of both. Each pair of seed and batch size makes
    faster or slower progress throughout: the log of its steps to target is normal with standard deviation
    ``log_noise``. The log of each evaluated loss strays with standard deviation ``evaluation_noise``.
    ``exponent``, ``dimension`` and ``bins`` are those of :meth:`QuadraticModel.power_law`. Hyperparameters in
    ``fixed`` are not offered for tuning.
    """

    target: Target = field(default_factory=lambda: Target("loss", at_most=0.1))
    search_space: SearchSpace = field(default_factory=dict)
    learning_rate: float = 0.1
    momentum: float = 0.0
    fixed: tuple[str, ...] = ()
    training_examples: int = 1_000_000
    validation_examples: int = 10_000
    fixed_s: float = 1e-3
    per_example_s: float = 1e-5
    input_share: float = 0.01
    log_noise: float = 0.0
    evaluation_noise: float = 0.0
    exponent: float = 1.0
    dimension: int = 10_000
    bins: int = 100


def open_session(reference: WorkloadReference) -> TrainingSession:
    """Return a session with the target, the search space and the fixed hyperparameters of ``reference``."""
    usual = QuadraticSettings()
    rate, momentum = QuadraticSession(usual).values(reference.fixed)
    settings = QuadraticSettings(
        target=reference.target or usual.target,
        search_space=reference.search_space,
        learning_rate=rate,
        momentum=momentum,
        fixed=tuple(reference.fixed),
    )
    return QuadraticSession(settings)


@dataclass(frozen=True)
class QuadraticSessions:
    """Opens sessions with the same settings."""

    settings: QuadraticSettings = field(default_factory=QuadraticSettings)

    def open(self) -> TrainingSession:
        """Return a fresh session."""
        return QuadraticSession(self.settings)


@dataclass(frozen=True)
class _Run:
    """All that a training is: where it stands follows from it."""

    batch_size: int
    learning_rate: float
    momentum: float
    seed: int
    step: int = 0


class QuadraticSession:
    """One noisy quadratic model under SGD with momentum."""

    def __init__(self, settings: QuadraticSettings) -> None:
        self._settings = settings
        self._model = QuadraticModel.power_law(settings.exponent, settings.dimension, settings.bins)
        self._defaults = {"learning_rate": settings.learning_rate, "momentum": settings.momentum}
        self._examples = {"train": settings.training_examples, "validation": settings.validation_examples}
        self._run: _Run | None = None
        self._trajectory: Trajectory | None = None
        self._delay = 1.0
        self._is_closed = False

    def describe(self) -> WorkloadDescription:
        """Say what the model is; raises WorkloadError where the target is on a metric other than loss."""
        self._check_open()
        settings = self._settings
        if settings.target.metric != "loss":
            raise WorkloadError(
                f"The target is on {settings.target.metric!r}, but the noisy quadratic model reports loss "
                "alone: name loss as the metric."
            )
        return WorkloadDescription(
            name=NAME,
            fingerprint=self._fingerprint(),
            target=settings.target,
            optimizer="sgd",
            optimizer_hyperparameters=self._tunable(self._defaults),
            search_space=self._tunable(settings.search_space),
            examples=self._examples,
            metrics=("loss",),
            initial_metrics={"loss": self._model.initial_loss},
            parameter_count=settings.dimension,
            configuration=Configuration(),
            environment={},
        )

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        """Start again; ``seed`` decides how fast the progress is, where ``log_noise`` is above 0."""
        self._check_open()
        self._run = None
        examples = self._settings.training_examples
        if not 1 <= batch_size <= examples:
            raise SessionError(
                f"Batch size {batch_size:,} cannot be trained: there are {examples:,} training examples. "
                f"Choose from 1 to {examples:,}."
            )
        rate, momentum = self.values(hyperparameters)
        self._start(_Run(batch_size, rate, momentum, seed))
        return Preparation(rebuilt=False, compile_s=0.0)

    def values(self, hyperparameters: Mapping[str, HyperparameterValue]) -> tuple[float, float]:
        """Return learning rate and momentum, checked; those not given take their defaults."""
        unknown = ", ".join(repr(name) for name in sorted(hyperparameters.keys() - self._defaults.keys()))
        if unknown:
            raise WorkloadError(
                f"The noisy quadratic model has no hyperparameter {unknown}; "
                "it has learning_rate and momentum."
            )
        values = {**self._defaults, **hyperparameters}
        if not all(isinstance(value, int | float) for value in values.values()):
            raise WorkloadError(f"Got {values}; learning_rate and momentum must be numbers.")
        rate, momentum = float(values["learning_rate"]), float(values["momentum"])
        if not (0 < rate < math.inf and 0 <= momentum < 1):
            raise WorkloadError(
                f"Got learning_rate {rate:g} and momentum {momentum:g}; the learning rate must be above 0 "
                "and finite, momentum at least 0 and below 1."
            )
        return rate, momentum

    def train(self, steps: int) -> BlockTiming:
        """Go on by ``steps`` steps; the training loss is the mean of the losses before each of them."""
        run, _ = self._training()
        if steps < 1:
            raise SessionError(f"train was asked for {steps} steps; ask for at least 1.")
        before, start = self._cumulative_loss(), self._progress()
        self._run = replace(run, step=run.step + steps)
        gained = self._cumulative_loss() - before
        loss = gained / (self._progress() - start) if math.isfinite(gained) else math.inf
        seconds = max(self._part_s(part) for part in (StepPart.COMPUTE, StepPart.INPUT))
        return BlockTiming(steps, steps * seconds, loss)

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        """Take no step, but say how long so many of that part take."""
        self._training()
        return BlockTiming(steps, steps * self._part_s(part), math.nan)

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        """Return a diagnosis without stages: the model has no pipeline."""
        run, _ = self._training()
        return InputDiagnosis(run.batch_size, input_workers=input_workers)

    def profile(self, folder: Path, steps: int) -> Sequence[Path]:
        """Raise SessionError: nothing runs on a device."""
        raise SessionError("The noisy quadratic model runs on no device that could be profiled.")

    def evaluate(self, split: str) -> Evaluation:
        """Return the expected loss, which is the same on every split, with the noise of an evaluation."""
        run, _ = self._training()
        if split not in self._examples:
            raise SessionError(f"There is no split {split!r}; there are {', '.join(self._examples)}.")
        examples = self._examples[split]
        seconds = self._settings.fixed_s + self._settings.per_example_s * examples / 3
        return Evaluation(run.step, split, {"loss": self._loss() * self._stray(run)}, examples, seconds)

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        """Return the expected squared norms, the same for every batch: |G|² + tr Σ / batch size."""
        run, trajectory = self._training()
        if batches < 1:
            raise SessionError(f"{batches} batches were asked for; ask for at least 1.")
        if run.batch_size < 2:
            raise SessionError("A batch of 1 example has no halves: reset with batch size 2 or more.")
        mean, noise = trajectory.squared_gradient_norm(int(self._progress())), self._model.gradient_noise
        half = run.batch_size // 2
        norms = GradientNorms(2 * half, mean + noise / (2 * half), (mean + noise / half,) * 2)
        return (norms,) * batches

    def memory(self) -> MemoryUse:
        """Return nothing known: the model occupies no memory worth the name."""
        return MemoryUse()

    def _part_s(self, part: StepPart) -> float:
        """Return the time (s) of one step of ``part``; input and computation overlap."""
        run, _ = self._training()
        compute_s = self._settings.fixed_s + self._settings.per_example_s * run.batch_size
        return compute_s * (self._settings.input_share if part is StepPart.INPUT else 1.0)

    def save(self, path: Path) -> None:
        """Write what the training is to ``path``, atomically."""
        run, _ = self._training()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(json.dumps(asdict(run)))
        partial.replace(path)

    def restore(self, path: Path) -> None:
        """Go on from what :meth:`save` wrote, after a reset with the same batch size and hyperparameters."""
        run, _ = self._training()
        try:
            kept = _Run(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise SessionError(f"{path} is no checkpoint that can be read: {error}.") from error
        if astuple(kept)[:3] != astuple(run)[:3]:
            raise SessionError(
                f"{path} was written at batch size {kept.batch_size:,}, learning rate {kept.learning_rate:g} "
                f"and momentum {kept.momentum:g}; reset with these before restoring it."
            )
        self._start(kept)

    def close(self) -> None:
        """End the session; closing twice is allowed."""
        self._is_closed, self._run = True, None

    def _start(self, run: _Run) -> None:
        self._run = run
        self._trajectory = Trajectory(self._model, run.batch_size, run.learning_rate, run.momentum)
        random = np.random.default_rng([run.seed % 2**32, run.batch_size])
        self._delay = math.exp(self._settings.log_noise * random.standard_normal())

    def _stray(self, run: _Run) -> float:
        """Return the factor by which an evaluation misses the loss: the same wherever a run is repeated."""
        noise = self._settings.evaluation_noise
        if not noise:
            return 1.0
        which = (run.batch_size, run.learning_rate, run.momentum, run.seed, run.step)
        return math.exp(noise * Random(hash(which)).gauss(0.0, 1.0))

    def _progress(self) -> float:
        """Return how many steps of the expected training have been made."""
        run, _ = self._training()
        return run.step / self._delay

    def _tunable(self, named: Mapping[str, Kind]) -> dict[str, Kind]:
        return {name: kind for name, kind in named.items() if name not in self._settings.fixed}

    def _loss(self) -> float:
        """Return the loss, between whole steps of the expected training interpolated in its log."""
        _, trajectory = self._training()
        part, whole = math.modf(self._progress())
        first = trajectory.loss(int(whole))
        return first if part == 0 else first ** (1 - part) * trajectory.loss(int(whole) + 1) ** part

    def _cumulative_loss(self) -> float:
        _, trajectory = self._training()
        part, whole = math.modf(self._progress())
        return trajectory.cumulative_loss(int(whole)) + part * trajectory.loss(int(whole))

    def _training(self) -> tuple[_Run, Trajectory]:
        self._check_open()
        if self._run is None or self._trajectory is None:
            raise SessionError("Nothing is under training yet: call reset first.")
        return self._run, self._trajectory

    def _check_open(self) -> None:
        if self._is_closed:
            raise SessionError("The session is closed; open a new one.")

    def _fingerprint(self) -> Fingerprint:
        settings = self._settings
        return Fingerprint(
            model=f"{NAME} {settings.exponent} {settings.dimension} {settings.bins}",
            optimizer=f"sgd {settings.learning_rate} {settings.momentum}",
            loss="half the sum of curvature times squares",
            data_shape=f"{settings.training_examples} {settings.validation_examples}",
            data_content=f"log noise {settings.log_noise} evaluation noise {settings.evaluation_noise}",
            target=str(settings.target),
            configuration=f"{settings.fixed_s} {settings.per_example_s} {settings.input_share}",
            versions="1",
        )
