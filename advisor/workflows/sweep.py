"""One pass over growing batch sizes in one configuration; every size is recorded as soon as it is known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.analysis.memory_growth import predicted_bytes
from advisor.analysis.quantities import memory, number
from advisor.analysis.step_times import VisitSpread, visit_spread
from advisor.analysis.throughput import summarize
from advisor.errors import (
    OutOfMemoryError,
    SessionError,
    SessionTimeoutError,
    SuspectedMemoryError,
    WorkloadError,
)
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, Throughput
from advisor.records.requests import MeasureRequest
from advisor.workflows.ports import LoadWatch
from advisor.workflows.stale import present_measurement
from advisor.workflows.timing import another_visit, first_visit, is_timed
from advisor.workflows.tools import SessionKeeper, Tools

HOPELESS = 1.5
"""A batch size that is expected to need this many times the memory there is, is not run."""
REFINED_TO = 1 / 16
"""Bisection ends where the largest batch size that fits is known to this share of itself."""

_ENDS = (MeasurementOutcome.OUT_OF_MEMORY, MeasurementOutcome.DATASET_LIMITED)


class Sweep:
    """Measures batch sizes of one workload in one configuration; what is recorded is not measured again.

    Recorded sizes that ran on more memory than there is now, or not on the longest example where that is
    asked for, are no answers: they are measured again, and stay recorded until they have run.
    """

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        request: MeasureRequest,
        variant: str = "",
    ) -> None:
        self.keeper, self.request = keeper, request
        self._with = f" ({variant})" if variant else ""
        self._tools, self._description = tools, description
        recorded = present_measurement(tools.store, description)
        rows = recorded.measurements if recorded else ()
        limit = keeper.session().memory().limit_bytes if rows else None
        self._rows = {row.batch_size: row for row in rows if _holds(row, request, limit)}
        self._others = {row.batch_size for row in rows if row.batch_size not in self._rows}
        self._unfinished: set[int] = set()

    @property
    def rows(self) -> Mapping[int, BatchMeasurement]:
        """What is known, by batch size."""
        return self._rows

    def measure(self, batch_size: int) -> bool:
        """Make sure that ``batch_size`` is known; return whether larger ones are worth trying.

        A size that did not run is tried again: there may be more memory by now.
        """
        row = self._rows.get(batch_size)
        if row is None or row.outcome is not MeasurementOutcome.OK:
            row = self._run(batch_size)
            self.remember(row)
            if row.detail:
                self._say(batch_size, row.detail)
        if row.outcome is MeasurementOutcome.OK:
            self._unfinished.add(batch_size)
        return row.outcome not in _ENDS

    @property
    def unfinished(self) -> Sequence[int]:
        """Batch sizes that were asked for and ran, and have to be timed once more; ascending."""
        spread, asked = self.spread, sorted(self._unfinished)
        return [size for size in asked if not is_timed(self._rows[size], self.request, spread)]

    @property
    def spread(self) -> VisitSpread:
        """How much visits differ over all that is known."""
        return visit_spread(row.visits for row in self._rows.values())

    def measure_again(self, batch_size: int) -> None:
        """Time an unfinished ``batch_size`` once more; if that fails, what is known of it stays."""
        row, load = self._rows[batch_size], self._tools.load
        try:
            session = self.keeper.session()
            load.start()
            row = _loaded(another_visit(session, row, self.request), load)
        except (SessionError, WorkloadError) as error:
            self.keeper.drop()
            self._unfinished.discard(batch_size)
            self._say(batch_size, f"It could not be timed again: {error}")
        else:
            self.remember(row)

    def refine(self) -> None:
        """Look for the largest batch size that fits, between the last that did and the first that did not."""
        while (size := self._between_the_last_two()) is not None:
            self.measure(size)

    def remember(self, row: BatchMeasurement) -> None:
        """Record ``row`` in the place of what was known of its batch size."""
        self._rows[row.batch_size] = row
        if row.outcome is MeasurementOutcome.OK:
            self._others.discard(row.batch_size)
        if row.batch_size in self._others:
            return
        self._tools.store.add_measurements(
            self._description.name,
            self._description.fingerprint,
            self._description.configuration,
            self._description.environment,
            [row],
        )

    def result(self) -> Throughput:
        """Return all that is known, which is something once a batch size was measured."""
        run = present_measurement(self._tools.store, self._description)
        assert run is not None
        return summarize(replace(run, measurements=tuple(self._rows.values())))

    def _ran(self) -> list[BatchMeasurement]:
        ran = (row for row in self._rows.values() if row.outcome is MeasurementOutcome.OK)
        return sorted(ran, key=lambda row: row.batch_size)

    def _run(self, batch_size: int) -> BatchMeasurement:
        if batch_size > self._description.training_examples:
            return BatchMeasurement(batch_size, MeasurementOutcome.DATASET_LIMITED, self._limited_by_data())
        self._tools.progress.say(f"Measuring batch size {number(batch_size)}{self._with}.")
        try:
            try:
                return self._expected_to_fail(batch_size) or self._time(batch_size)
            except SuspectedMemoryError:
                self.keeper.drop()  # The kill may have had another cause: only a second one is believed.
                return self._time(batch_size)
        except WorkloadError as error:
            return BatchMeasurement(batch_size, MeasurementOutcome.FAILED, str(error))
        except SessionError as error:
            self.keeper.drop()
            detail = f"{error.message}\n{error.detail}".strip()
            return BatchMeasurement(batch_size, self._outcome(batch_size, error), detail)

    def _time(self, batch_size: int) -> BatchMeasurement:
        session, load = self.keeper.session(), self._tools.load
        load.start()
        return _loaded(first_visit(session, batch_size, self.request), load)

    def _expected_to_fail(self, batch_size: int) -> BatchMeasurement | None:
        """Return an outcome without a run where the growth so far leaves no doubt of it."""
        probed = self.request.probe_longest
        ran = [row for row in self._ran() if row.probed_longest is probed]
        sizes = [(row.batch_size, row.memory.charged_bytes) for row in ran]
        need = predicted_bytes([(size, used) for size, used in sizes if used is not None], batch_size)
        limit = self.keeper.session().memory().limit_bytes if need else None
        if need is None or limit is None or need < HOPELESS * limit:
            return None
        return BatchMeasurement(
            batch_size,
            MeasurementOutcome.OUT_OF_MEMORY,
            f"Not run: by the growth up to batch size {number(sizes[-1][0])} it would need about "
            f"{memory(need)} of memory, and {memory(limit)} may be used.",
        )

    def _outcome(self, batch_size: int, error: SessionError) -> MeasurementOutcome:
        """Return what ``error`` means; a mere suspicion counts only where a smaller batch size has run."""
        if isinstance(error, SessionTimeoutError):
            return MeasurementOutcome.TIMEOUT
        baseless = isinstance(error, SuspectedMemoryError) and not any(
            row.batch_size < batch_size for row in self._ran()
        )
        is_memory = isinstance(error, OutOfMemoryError) and not baseless
        return MeasurementOutcome.OUT_OF_MEMORY if is_memory else MeasurementOutcome.FAILED

    def _say(self, batch_size: int, detail: str) -> None:
        self._tools.progress.say(f"Batch size {batch_size:,}{self._with}: {detail.splitlines()[0]}")

    def _limited_by_data(self) -> str:
        examples = self._description.training_examples
        return f"The training split has {examples:,} example{'s' if examples > 1 else ''}."

    def _between_the_last_two(self) -> int | None:
        """Return a batch size between what fits and what does not, or None where these are close."""
        ran = self._ran()
        largest = ran[-1].batch_size if ran else 0
        too_large = [
            size
            for size, row in self._rows.items()
            if row.outcome is MeasurementOutcome.OUT_OF_MEMORY and size > largest
        ]
        if not ran or not too_large or min(too_large) - largest <= max(1, REFINED_TO * largest):
            return None
        middle = (largest + min(too_large)) // 2
        return middle if middle not in self._rows else None


def _holds(row: BatchMeasurement, request: MeasureRequest, limit_bytes: int | None) -> bool:
    """Return whether ``row`` is an answer to ``request`` where so much memory may be used."""
    if row.outcome is not MeasurementOutcome.OK:
        return True
    used = row.memory.charged_bytes
    fits = used is None or limit_bytes is None or used <= limit_bytes
    return fits and not request.again and (row.probed_longest or not request.probe_longest)


def _loaded(row: BatchMeasurement, load: LoadWatch) -> BatchMeasurement:
    """Return ``row`` with what other programs did, the worst of all its visits."""
    seen = [cpus for cpus in (row.competing_cpus, load.competing_cpus()) if cpus is not None]
    on_gpu = sorted({*row.gpu_processes, *load.gpu_processes()})
    return replace(row, competing_cpus=max(seen, default=None), gpu_processes=tuple(on_gpu))
