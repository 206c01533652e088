"""Studies, their trials, and the trials' curves."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from advisor.errors import StorageError
from advisor.records.trials import CurvePoint, Study, Trial, TrialPlan, TrialState
from advisor.storage import owners
from advisor.storage.codec import from_plain, to_plain
from advisor.storage.database import Database, now
from advisor.storage.tables import curve_points, studies, trials

_RUNNING = trials.c.state == TrialState.RUNNING.name


class SqlStudies:
    """The studies in one database."""

    _database: Database

    def open_study(self, study: Study) -> Study:
        """Record ``study`` unless one of its name exists; return the recorded one, created_at filled in."""
        rest = to_plain(replace(study, created_at=study.created_at or now()))
        columns = {name: rest.pop(name) for name in ("name", "workload", "note", "created_at")}
        with self._database.write() as connection:
            with suppress(IntegrityError), connection.begin_nested():
                connection.execute(insert(studies).values(columns | {"study": rest}))
            return _study(_study_row(connection, study.name))

    def studies(self, workload: str | None = None) -> Sequence[Study]:
        """Return recorded studies, oldest first."""
        query = select(studies).order_by(studies.c.id)
        if workload is not None:
            query = query.where(studies.c.workload == workload)
        with self._database.read() as connection:
            return [_study(row) for row in connection.execute(query)]

    def set_note(self, study: str, note: str) -> None:
        """Replace the note of a study."""
        with self._database.write() as connection:
            row = _study_row(connection, study)
            connection.execute(update(studies).where(studies.c.id == row.id).values(note=_text(note)))

    def trials(self, study: str) -> Sequence[Trial]:
        """Return the trials of a study with their curves, by number.

        A trial found running whose owner no longer lives is recorded as interrupted first.
        """
        self._interrupt_orphans(study)
        with self._database.read() as connection:
            row = _study_row(connection, study)
            batch_size, curves = _study(row).batch_size, _curves(connection, row.id)
            query = select(trials).where(trials.c.study_id == row.id).order_by(trials.c.number)
            return [
                from_plain(Trial, trial._mapping, {"batch_size": batch_size, "curve": curves[trial.number]})
                for trial in connection.execute(query)
            ]

    def start_trial(self, study: str, number: int | None, plan: TrialPlan) -> int:
        """Record a running trial, owned by this process, and return its number; None takes the next free."""
        with self._database.write() as connection:
            study_id = int(_study_row(connection, study).id)
            number = _next_number(connection, study_id) if number is None else number
            values = {
                "study_id": study_id,
                "number": number,
                "state": TrialState.RUNNING.name,
                "reason": "",
                "owner": owners.this_process(),
                "plan": to_plain(plan),
                "started_at": now(),
            }
            try:
                connection.execute(insert(trials).values(values))
            except IntegrityError as error:
                raise StorageError(f"Trial {number} of the study {study} is recorded already.") from error
        return number

    def record_point(self, study: str, number: int, point: CurvePoint) -> None:
        """Record one evaluation of a running trial."""
        with self._database.write() as connection:
            study_id, state = _trial_state(connection, study, number)
            if state is not TrialState.RUNNING:
                raise StorageError(
                    f"Trial {number} of the study {study} is {state.value}, so it cannot go on."
                )
            values = {"study_id": study_id, "trial": number, "step": point.step, "point": to_plain(point)}
            try:
                connection.execute(insert(curve_points).values(values))
            except IntegrityError as error:
                raise StorageError(
                    f"Step {point.step} of trial {number} of the study {study} is recorded already."
                ) from error

    def finish_trial(
        self, study: str, number: int, state: TrialState, reason: str, checkpoint: str | None = None
    ) -> None:
        """Record how a trial ended; what is said later replaces what was said before."""
        with self._database.write() as connection:
            study_id, _ = _trial_state(connection, study, number)
            _end(connection, _is_trial(study_id, number), state, reason, checkpoint)

    def _interrupt_orphans(self, study: str) -> None:
        with self._database.read() as connection:
            study_id = _study_row(connection, study).id
            query = select(trials.c.number, trials.c.owner).where(trials.c.study_id == study_id, _RUNNING)
            orphans = [row for row in connection.execute(query) if owners.is_dead(row.owner)]
        for number, owner in orphans:
            reason = f"The process that ran it ({owners.shown(owner)}) ended before the trial did."
            with self._database.write() as connection:
                still_running = _is_trial(study_id, number) & _RUNNING
                _end(connection, still_running, TrialState.INTERRUPTED, reason, None)


def _text(said: str) -> str:
    """Return ``said`` without what a database cannot hold; it may quote the output of a crashed program."""
    return said.replace("\0", "").encode(errors="replace").decode()


def _study(row: Row[Any]) -> Study:
    return from_plain(Study, row.study, row._mapping)


def _study_row(connection: Connection, name: str) -> Row[Any]:
    row = connection.execute(select(studies).where(studies.c.name == name)).first()
    if row is None:
        raise StorageError(f"No study named {name} is recorded. List those that are with: advisor studies")
    return row


def _next_number(connection: Connection, study_id: int) -> int:
    """Return the next free number; until the transaction ends nobody else is given one (PostgreSQL)."""
    connection.execute(select(studies.c.id).where(studies.c.id == study_id).with_for_update())
    last = connection.scalar(select(func.max(trials.c.number)).where(trials.c.study_id == study_id))
    return 0 if last is None else int(last) + 1


def _is_trial(study_id: int, number: int) -> ColumnElement[bool]:
    return (trials.c.study_id == study_id) & (trials.c.number == number)


def _trial_state(connection: Connection, study: str, number: int) -> tuple[int, TrialState]:
    """Return the study's id and the trial's state, which nobody else changes before this transaction ends."""
    study_id = int(_study_row(connection, study).id)
    query = select(trials.c.state).where(_is_trial(study_id, number)).with_for_update()
    state = connection.scalar(query)
    if state is None:
        raise StorageError(f"Trial {number} of the study {study} is not recorded.")
    return study_id, from_plain(TrialState, state)


def _end(
    connection: Connection, which: ColumnElement[bool], state: TrialState, reason: str, checkpoint: str | None
) -> None:
    end = {
        "state": state.name,
        "reason": _text(reason),
        "checkpoint": checkpoint,
        "finished_at": func.coalesce(trials.c.finished_at, now()),
    }
    connection.execute(update(trials).where(which).values(end))


def _curves(connection: Connection, study_id: int) -> dict[int, list[object]]:
    """Return the points of every trial of a study, by step."""
    query = (
        select(curve_points.c.trial, curve_points.c.point)
        .where(curve_points.c.study_id == study_id)
        .order_by(curve_points.c.trial, curve_points.c.step)
    )
    curves: dict[int, list[object]] = defaultdict(list)
    for trial, point in connection.execute(query):
        curves[trial].append(point)
    return curves
