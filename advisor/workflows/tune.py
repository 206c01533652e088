"""``advisor tune``: one Optuna study at one batch size."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile

from advisor.analysis.curves import best_point
from advisor.analysis.optimizers import search_ranges
from advisor.analysis.quasi_random import number_of_points, quasi_random_point, usual_value, window
from advisor.errors import SessionError, StorageError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import TuneRequest
from advisor.records.scaling import BatchSizeResult
from advisor.records.search_space import HyperparameterValue
from advisor.records.trials import (
    CurvePoint,
    Study,
    StudyKind,
    Trial,
    TrialPlan,
    TrialPurpose,
    TrialState,
)
from advisor.records.tuning import TuningResult
from advisor.workflows.measure import check_batch_size
from advisor.workflows.stale import stale_measurement
from advisor.workflows.studies import best_trial, open_study, tuning_result
from advisor.workflows.tools import SessionKeeper, Tools, describe
from advisor.workflows.trial import TrialRunner, Watch

EPOCHS = 20
"""Length of a trial where nothing is known of the steps that the target takes."""
TIMES_STEPS_TO_TARGET = 3
"""Length of a trial as a multiple of the known steps to target: room to go beyond it."""
LOOKS = 25
"""Evaluations of one trial, at regular intervals of steps."""
FAILURES_IN_A_ROW = 3
COUNTED = (TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED)
EXPLORED_SHARE = 0.5
"""Share of the trials that is quasi-random; the rest exploits what they found."""

Values = Mapping[str, HyperparameterValue]


def tune(tools: Tools, request: TuneRequest, artifacts: Path) -> TuningResult:
    """Run the study at ``request.batch_size`` until it has ``request.trials`` finished trials.

    Trials of an earlier run count. Checkpoints go to ``artifacts``; the best trial's is kept.
    """
    with SessionKeeper(tools.sessions) as keeper:
        description = describe(tools, keeper)
        if stale := stale_measurement(tools.store, description):
            tools.progress.say(f"{stale} `advisor measure` measures again.")
        check_batch_size(request.batch_size, description.training_examples)
        return _Tuning(tools, keeper, description, request, artifacts).run()


class _Tuning:
    """One run of a study: half of its trials explore, the others exploit."""

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        request: TuneRequest,
        artifacts: Path,
    ) -> None:
        self._tools, self._keeper, self._request = tools, keeper, request
        self._space = search_ranges(description)
        self._held = description.optimizer_hyperparameters
        self._known = _known_best(tools, description, request.batch_size)
        self._study = _open_study(tools, description, request)
        tools.board.open(self._study, self._space, request.seed)
        self._runner = TrialRunner(tools.store, keeper, self._study)
        self._artifacts = artifacts
        self._probe_artifacts()
        self._refresh()
        self._tell_the_board()

    def run(self) -> TuningResult:
        """Run what is missing of the trials that were asked for."""
        while len(self._ended()) < self._request.trials and not self._exhausted():
            self._run_one()
            self._refresh()
            self._tools.progress.advance("trials", len(self._ended()), self._request.trials)
            self._stop_if_broken()
        return tuning_result(self._study, self._space, self._trials)

    def _refresh(self) -> None:
        """Read the trials again: another process may work on the same study."""
        self._trials = list(self._tools.store.trials(self._study.name))

    def _probe_artifacts(self) -> None:
        """Make sure that checkpoints can be written before anything is trained."""
        folder = self._checkpoint(0).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise StorageError(
                f"Checkpoints cannot be written to {self._artifacts}: {error.strerror or error}. "
                "Name a folder that can be written with --artifacts."
            ) from error

    def _tell_the_board(self) -> None:
        """Show and end on the board what it lacks: a killed run, or a study deleted in the dashboard."""
        for trial in self._trials:
            if trial.state is not TrialState.RUNNING:
                self._tools.board.add(self._study.name, trial, self._value(trial))
                self._tell(trial)

    def _tell(self, trial: Trial) -> None:
        self._tools.board.tell(self._study.name, trial.number, trial.state, self._value(trial), trial.reason)

    def _value(self, trial: Trial) -> float | None:
        best = best_point(trial.curve, self._study.target)
        return best.metrics[self._study.target.metric] if best else None

    @property
    def _max_steps(self) -> int:
        steps = self._study.settings["max_train_steps"]
        assert isinstance(steps, int)
        return steps

    def _ended(self) -> Sequence[Trial]:
        """Trials that count: a failed one too, so that the search goes on to other points."""
        return [trial for trial in self._trials if trial.state in COUNTED]

    def _exhausted(self) -> bool:
        different = {tuple(sorted(trial.plan.hyperparameters.items())) for trial in self._ended()}
        return len(different) >= number_of_points(self._space)

    def _run_one(self) -> None:
        number, values = self._propose()
        plan = TrialPlan(values, self._request.seed, TrialPurpose.SELECT, self._max_steps)
        try:
            trial = self._runner.run(number, plan, looks(self._max_steps), self._watch(number))
        except BaseException:
            _remove(self._checkpoint(number))
            self._end_on_the_board(number)
            raise
        self._tell(trial)
        self._keep_best_checkpoint(number)

    def _end_on_the_board(self, number: int) -> None:
        """End a trial there as it was recorded, and one that was not recorded yet as interrupted."""
        recorded = self._tools.store.trials(self._study.name)
        trial = next((trial for trial in recorded if trial.number == number), None)
        if trial:
            self._tell(trial)
        else:
            self._tools.board.tell(self._study.name, number, TrialState.INTERRUPTED, None, "interrupted")

    def _stop_if_broken(self) -> None:
        """Raise SessionError where the last trials all failed: more would fail too."""
        last = self._ended()[-FAILURES_IN_A_ROW:]
        if len(last) == FAILURES_IN_A_ROW and all(trial.state is TrialState.FAILED for trial in last):
            raise SessionError(
                f"The last {len(last)} trials at batch size {self._study.batch_size:,} failed. "
                f"{last[-1].reason}"
            )

    def _watch(self, number: int) -> Watch:
        """Show each evaluation on the board, and save the model whenever it is the trial's best so far."""
        target = self._study.target

        def watch(curve: Sequence[CurvePoint]) -> None:
            self._tools.board.report(
                self._study.name, number, curve[-1].step, curve[-1].metrics[target.metric]
            )
            if best_point(curve, target) is curve[-1]:
                self._keeper.session().save(self._checkpoint(number))

        return watch

    def _checkpoint(self, number: int) -> Path:
        return self._artifacts / self._study.name / f"trial-{number}.npz"

    def _keep_best_checkpoint(self, number: int) -> None:
        """Keep one checkpoint, the study's best: disk use does not grow with the number of trials."""
        self._refresh()
        path = self._checkpoint(number)
        best = best_trial(self._study, self._trials)
        if best is None or best.number != number:
            _remove(path)
            return
        for trial in self._trials:
            if trial.checkpoint and trial.number != number:
                _remove(Path(trial.checkpoint))
                self._set_checkpoint(trial, None)
            elif trial.number == number:
                self._set_checkpoint(trial, str(path.resolve()))

    def _set_checkpoint(self, trial: Trial, checkpoint: str | None) -> None:
        self._tools.store.finish_trial(self._study.name, trial.number, trial.state, trial.reason, checkpoint)

    def _propose(self) -> tuple[int, Values]:
        index = len(self._ended())
        explores = index < EXPLORED_SHARE * self._request.trials or number_of_points(self._space) < math.inf
        if not explores:
            return self._tools.board.ask(self._study.name)
        values = self._first(index) or self._unexplored(index)
        return self._tools.board.ask_at(self._study.name, values), values

    def _first(self, index: int) -> Values | None:
        """Return what `recommend` found at this batch size, for the first trial."""
        if index or "learning_rate" not in self._known or "learning_rate" not in self._space:
            return None
        usual = {name: usual_value(range_, self._held.get(name)) for name, range_ in self._space.items()}
        return {**usual, **{name: value for name, value in self._known.items() if name in usual}}

    def _unexplored(self, index: int) -> Values:
        """Return the next quasi-random point that no trial has had yet."""
        space = window(self._space, self._known)
        had = [
            trial.plan.hyperparameters for trial in self._trials if trial.state is not TrialState.INTERRUPTED
        ]
        points = (quasi_random_point(space, number, self._request.seed) for number in count(index))
        return next(point for point in points if point not in had)


def _remove(path: Path) -> None:
    with suppress(OSError):  # What cannot be removed does no harm; the study goes on.
        path.unlink(missing_ok=True)


def looks(max_steps: int) -> Iterator[int]:
    """Yield the steps to evaluate at: regular intervals, the last step included."""
    every = max(1, max_steps // LOOKS)
    yield from range(every, max_steps, every)
    yield max_steps


def _known_best(tools: Tools, description: WorkloadDescription, batch_size: int) -> Values:
    """Return the hyperparameters that `recommend` selected at this batch size, if it did."""
    result = _recommended(tools, description, batch_size)
    return result.best or {} if result else {}


def _recommended(tools: Tools, description: WorkloadDescription, batch_size: int) -> BatchSizeResult | None:
    advice = tools.store.latest_advice(description.name)
    if advice is None or advice.description.fingerprint.training != description.fingerprint.training:
        return None
    return next((result for result in advice.results if result.batch_size == batch_size), None)


def _max_train_steps(tools: Tools, description: WorkloadDescription, request: TuneRequest) -> int:
    if request.max_train_steps is not None:
        return request.max_train_steps
    result = _recommended(tools, description, request.batch_size)
    if result and result.steps:
        return math.ceil(TIMES_STEPS_TO_TARGET * result.steps)
    return max(LOOKS, EPOCHS * description.training_examples // request.batch_size)


def _open_study(tools: Tools, description: WorkloadDescription, request: TuneRequest) -> Study:
    settings = {"max_train_steps": _max_train_steps(tools, description, request)}
    study = open_study(tools, description, StudyKind.TUNE, request.batch_size, settings, request.provenance)
    recorded = study.settings["max_train_steps"]
    if request.max_train_steps not in (None, recorded):
        raise WorkloadError(
            f"Study {study.name} was begun with max_train_steps = {recorded}, and {request.max_train_steps} "
            "was asked for. Trials of different lengths cannot be compared: leave it out, "
            "or use another --storage."
        )
    return study
