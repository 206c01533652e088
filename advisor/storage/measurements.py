"""Measured sweeps: every measurement stays, the newest of each batch size is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from sqlalchemy import Row, func, insert, select

from advisor.records.description import Configuration, Fingerprint
from advisor.records.measurement import BatchMeasurement, MeasurementRun
from advisor.storage.codec import from_plain, to_plain
from advisor.storage.database import Database, now
from advisor.storage.tables import measurement_runs, measurements


class SqlMeasurements:
    """The measurements in one database."""

    _database: Database

    def add_measurements(
        self,
        workload: str,
        fingerprint: Fingerprint,
        configuration: Configuration,
        environment: Mapping[str, str],
        measurements: Sequence[BatchMeasurement],
    ) -> None:
        """Record measured batch sizes; a batch size measured again replaces the older one in reads."""
        run = {
            "workload": workload,
            "timing": fingerprint.timing,
            "measured_at": now(),
            "fingerprint": to_plain(fingerprint),
            "configuration": to_plain(configuration),
            "environment": dict(environment),
        }
        _insert(self._database, run, measurements)

    def latest_measurements(self, workload: str) -> Sequence[MeasurementRun]:
        """Return one run for each timing fingerprint of ``workload``, the newest first."""
        of_timing = measurement_runs.c.timing
        newest = (
            select(func.max(measurements.c.run_id).label("run_id"), measurements.c.batch_size)
            .join(measurement_runs)
            .where(measurement_runs.c.workload == workload)
            .group_by(of_timing, measurements.c.batch_size)
            .subquery()
        )
        rows_of_newest = (
            select(measurement_runs, measurements.c.measurement)
            .join(measurements)
            .join(
                newest,
                (newest.c.run_id == measurements.c.run_id)
                & (newest.c.batch_size == measurements.c.batch_size),
            )
            .order_by(of_timing, measurement_runs.c.id.desc())
        )
        with self._database.read() as connection:
            rows = connection.execute(rows_of_newest)
            runs = [_run(group) for _, group in groupby(rows, key=lambda row: row.timing)]
        return [run for _, run in sorted(runs, key=lambda numbered: numbered[0], reverse=True)]


def _insert(database: Database, run: Mapping[str, object], rows: Iterable[BatchMeasurement]) -> None:
    with database.write() as connection:
        result = connection.execute(insert(measurement_runs).values(run))
        (run_id,) = result.inserted_primary_key or (None,)
        for row in rows:
            values = {"run_id": run_id, "batch_size": row.batch_size, "measurement": to_plain(row)}
            connection.execute(insert(measurements).values(values))


def _run(rows: Iterable[Row[tuple[object, ...]]]) -> tuple[int, MeasurementRun]:
    """Return the number of the newest of ``rows``, which comes first, and the run that they make up."""
    newest, *older = rows
    measured = {"measurements": [row.measurement for row in (newest, *older)]}
    run = from_plain(MeasurementRun, newest._mapping, measured)
    in_order = sorted(run.measurements, key=lambda measurement: measurement.batch_size)
    return newest.id, replace(run, measurements=tuple(in_order))
