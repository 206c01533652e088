"""A Store that lives in this process alone and forgets everything with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from advisor.errors import StorageError
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.measurement import BatchMeasurement, MeasurementRun
from advisor.records.recommendation import Advice
from advisor.records.trials import CurvePoint, Study, Trial, TrialPlan, TrialState


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _merged(newer: MeasurementRun, older: MeasurementRun | None) -> MeasurementRun:
    """Return ``newer`` with the batch sizes that only ``older`` has."""
    rows = {row.batch_size: row for row in (older.measurements if older else ())}
    rows |= {row.batch_size: row for row in newer.measurements}
    return replace(newer, measurements=tuple(rows[size] for size in sorted(rows)))


@dataclass
class MemoryStore:
    """Dictionaries that keep the promises of the port; every trial's owner lives."""

    _runs: dict[tuple[str, str], MeasurementRun] = field(default_factory=dict)
    _studies: dict[str, Study] = field(default_factory=dict)
    _trials: dict[str, dict[int, Trial]] = field(default_factory=dict)
    _descriptions: dict[str, WorkloadDescription] = field(default_factory=dict)
    _advice: dict[str, Advice] = field(default_factory=dict)

    def add_measurements(
        self,
        workload: str,
        fingerprint: Fingerprint,
        configuration: Configuration,
        environment: Mapping[str, str],
        measurements: Sequence[BatchMeasurement],
    ) -> None:
        run = MeasurementRun(
            workload, fingerprint, configuration, dict(environment), tuple(measurements), _now()
        )
        key = (workload, fingerprint.timing)
        self._runs[key] = _merged(run, self._runs.pop(key, None))

    def latest_measurements(self, workload: str) -> Sequence[MeasurementRun]:
        return [run for (name, _), run in reversed(self._runs.items()) if name == workload]

    def open_study(self, study: Study) -> Study:
        if study.name not in self._studies:
            self._studies[study.name] = replace(study, created_at=study.created_at or _now())
            self._trials[study.name] = {}
        return self._studies[study.name]

    def studies(self, workload: str | None = None) -> Sequence[Study]:
        return [study for study in self._studies.values() if workload in (None, study.workload)]

    def set_note(self, study: str, note: str) -> None:
        self._require(study)
        self._studies[study] = replace(self._studies[study], note=note)

    def trials(self, study: str) -> Sequence[Trial]:
        self._require(study)
        return [trial for _, trial in sorted(self._trials[study].items())]

    def start_trial(self, study: str, number: int | None, plan: TrialPlan) -> int:
        self._require(study)
        number = max(self._trials[study], default=-1) + 1 if number is None else number
        if number in self._trials[study]:
            raise StorageError(f"Trial {number} of the study {study!r} is recorded already.")
        batch_size = self._studies[study].batch_size
        trial = Trial(number, batch_size, plan, TrialState.RUNNING, "", (), owner="this process")
        self._trials[study][number] = trial
        return number

    def record_point(self, study: str, number: int, point: CurvePoint) -> None:
        trial = self._trial(study, number)
        if trial.state is not TrialState.RUNNING:
            raise StorageError(f"Trial {number} of the study {study!r} is {trial.state.value}.")
        if any(known.step == point.step for known in trial.curve):
            raise StorageError(
                f"Step {point.step} of trial {number} of the study {study!r} is recorded already."
            )
        curve = (*trial.curve, point)
        if trial.curve and point.step < trial.curve[-1].step:
            curve = tuple(sorted(curve, key=lambda known: known.step))
        self._trials[study][number] = replace(trial, curve=curve)

    def finish_trial(
        self, study: str, number: int, state: TrialState, reason: str, checkpoint: str | None = None
    ) -> None:
        trial = self._trial(study, number)
        self._trials[study][number] = replace(trial, state=state, reason=reason, checkpoint=checkpoint)

    def save_description(self, description: WorkloadDescription) -> None:
        self._descriptions.pop(description.name, None)
        self._descriptions[description.name] = description

    def descriptions(self) -> Sequence[WorkloadDescription]:
        return list(reversed(self._descriptions.values()))

    def save_advice(self, advice: Advice) -> None:
        self._advice[advice.description.name] = advice

    def latest_advice(self, workload: str) -> Advice | None:
        return self._advice.get(workload)

    def _require(self, study: str) -> None:
        if study not in self._studies:
            raise StorageError(f"There is no study {study!r}.")

    def _trial(self, study: str, number: int) -> Trial:
        self._require(study)
        if number not in self._trials[study]:
            raise StorageError(f"Trial {number} of the study {study!r} is not recorded.")
        return self._trials[study][number]
