from dataclasses import replace
from typing import Any

import pytest

from advisor.errors import (
    OutOfMemoryError,
    SessionError,
    SessionTimeoutError,
    StorageError,
    SuspectedMemoryError,
    WorkloadError,
)
from advisor.execution.load import LoadWatch
from advisor.records.description import Configuration, WorkloadDescription
from advisor.records.measurement import MeasurementOutcome
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.records.session import BlockTiming
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.workflows.measure import measure
from advisor.workflows.ports import TrainingSession
from advisor.workflows.tools import Tools
from tests.fakes.memory_store import MemoryStore
from tests.workflows.conftest import Heard, WatchedSession, WatchedSessions, said, tools_for

SETTINGS = QuadraticSettings(training_examples=1000)


class UnsteadySession(WatchedSession):
    """Every other block takes three times as long."""

    def train(self, steps: int) -> BlockTiming:
        block = super().train(steps)
        return replace(block, seconds=block.seconds * (1 + 2 * (self._count[0] % 2)))


class UnsteadySessions(WatchedSessions):
    def open(self) -> TrainingSession:
        return UnsteadySession(self.settings, self.before, self.calls)


def test_the_time_per_step_is_the_model_s(quadratic: Tools) -> None:
    found = measure(quadratic, MeasureRequest(BatchSizes(maximum=4096)))
    for row in found.table:
        assert row.time_per_step_s is not None
        assert row.time_per_step_s.estimate == pytest.approx(1e-3 + 1e-5 * row.batch_size, rel=1e-6)
    assert found.time_model is not None
    assert found.time_model.fixed_s == pytest.approx(1e-3, rel=0.01)
    assert found.time_model.per_example_s == pytest.approx(1e-5, rel=0.01)
    assert [row.batch_size for row in found.table] == [2**power for power in range(13)]


def test_the_sweep_ends_with_the_data() -> None:
    found = measure(tools_for(QuadraticSessions(SETTINGS)), MeasureRequest())
    assert found.largest_feasible_batch_size == 512
    assert found.table[-1].batch_size == 1024
    assert found.table[-1].outcome is MeasurementOutcome.DATASET_LIMITED


def test_a_second_run_measures_nothing_and_a_wider_one_what_is_missing() -> None:
    sessions = WatchedSessions(SETTINGS)
    tools = tools_for(sessions)
    first = measure(tools, MeasureRequest(BatchSizes(maximum=64)))
    calls = sessions.calls[0]
    assert measure(tools, MeasureRequest(BatchSizes(maximum=64))).table == first.table
    assert sessions.calls[0] == calls
    wider = measure(tools, MeasureRequest(BatchSizes(maximum=128)))
    before = [row.time_per_step_s.estimate for row in first.table if row.time_per_step_s]
    assert [row.time_per_step_s.estimate for row in wider.table[:-1] if row.time_per_step_s] == before
    assert wider.table[-1].batch_size == 128


@pytest.mark.parametrize(
    ("error", "outcome", "largest"),
    [
        (OutOfMemoryError("no memory is left", "exit status -9"), MeasurementOutcome.OUT_OF_MEMORY, 16),
        (SessionError("it crashed"), MeasurementOutcome.FAILED, 512),
        (SessionTimeoutError("no answer in 60 s"), MeasurementOutcome.TIMEOUT, 512),
    ],
)
def test_only_memory_ends_the_sweep(error: SessionError, outcome: MeasurementOutcome, largest: int) -> None:
    def before(batch_size: int, _call: int) -> None:
        if batch_size == 32:
            raise error

    sessions = WatchedSessions(SETTINGS, before)
    found = measure(tools_for(sessions), MeasureRequest())
    row = next(row for row in found.table if row.batch_size == 32)
    assert row.outcome is outcome and error.message in row.detail and row.time_per_step_s is None
    assert found.largest_feasible_batch_size == largest
    assert sessions.opened == 2


def test_an_error_of_the_model_at_every_size_is_told_as_such() -> None:
    def before(batch_size: int, _call: int) -> None:
        raise SessionError("the layer expects 3 channels")

    with pytest.raises(WorkloadError, match=r"No batch size could be trained.*3 channels"):
        measure(tools_for(WatchedSessions(SETTINGS, before)), MeasureRequest())


def test_what_was_measured_before_an_interruption_is_kept() -> None:
    def before(batch_size: int, _call: int) -> None:
        if batch_size == 8:
            raise KeyboardInterrupt

    tools = tools_for(WatchedSessions(SETTINGS, before))
    with pytest.raises(KeyboardInterrupt):
        measure(tools, MeasureRequest(BatchSizes(maximum=16)))
    (run,) = tools.store.latest_measurements("noisy-quadratic")
    assert [row.batch_size for row in run.measurements] == [1, 2, 4]


def visits(tools: Tools) -> dict[int, int]:
    """How often each batch size was timed."""
    (run,) = tools.store.latest_measurements("noisy-quadratic")
    return {row.batch_size: len(row.visits) for row in run.measurements}


def fails_at_the_second_visit(batch_size: int, error: BaseException) -> WatchedSessions:
    """Sessions that raise ``error`` once they come back to ``batch_size`` from others."""
    seen: list[int] = []

    def before(size: int, _call: int) -> None:
        is_back = size == batch_size and size in seen and seen[-1] != size
        seen.append(size)
        if is_back and not raised:
            raised.append(size)
            raise error

    raised: list[int] = []
    return WatchedSessions(SETTINGS, before)


def test_every_batch_size_is_timed_twice_with_the_others_in_between() -> None:
    order: list[int] = []

    def before(batch_size: int, _call: int) -> None:
        if order[-1:] != [batch_size]:
            order.append(batch_size)

    sizes = BatchSizes(listed=(1, 2, 4, 8, 16))
    measure(tools_for(WatchedSessions(SETTINGS, before)), MeasureRequest(sizes))
    assert order[:10] == [1, 2, 4, 1, 8, 2, 16, 4, 8, 16]


def test_a_second_visit_that_was_interrupted_is_made_up_and_no_other() -> None:
    tools = tools_for(fails_at_the_second_visit(8, KeyboardInterrupt()))
    request = MeasureRequest(BatchSizes(listed=(4, 8, 16)))
    with pytest.raises(KeyboardInterrupt):
        measure(tools, request)
    assert visits(tools) == {4: 2, 8: 1, 16: 1}
    measure(tools, request)
    assert visits(tools) == {4: 2, 8: 2, 16: 2}


def test_a_second_visit_that_fails_takes_nothing_away() -> None:
    tools = tools_for(fails_at_the_second_visit(8, OutOfMemoryError("no memory is left")))
    found = measure(tools, MeasureRequest(BatchSizes(listed=(4, 8, 16))))
    assert visits(tools) == {4: 2, 8: 1, 16: 2}
    assert isinstance(tools.sessions, WatchedSessions) and tools.sessions.opened == 2
    assert all(row.time_per_step_s is not None for row in found.table)
    assert "Batch size 8: It could not be timed again: no memory is left" in said(tools)


def test_a_database_that_fails_is_no_fault_of_the_training() -> None:
    class Full(MemoryStore):
        writes = 0

        def add_measurements(self, *arguments: Any) -> None:
            self.writes += 1
            if self.writes > 3:
                raise StorageError("the disk is full")
            super().add_measurements(*arguments)

    tools = tools_for(WatchedSessions(SETTINGS), Full())
    with pytest.raises(StorageError, match="the disk is full"):
        measure(tools, MeasureRequest(BatchSizes(listed=(4, 8, 16))))


class BusyWatch(LoadWatch):
    """Sees ever less of other programs."""

    seen = 4.0

    def competing_cpus(self) -> float:
        self.seen /= 2
        return self.seen


def test_the_worst_visit_tells_how_busy_the_machine_was() -> None:
    tools = replace(tools_for(WatchedSessions(SETTINGS)), load=BusyWatch())
    measure(tools, MeasureRequest(BatchSizes(listed=(4, 8))))
    (run,) = tools.store.latest_measurements("noisy-quadratic")
    assert [row.competing_cpus for row in run.measurements] == [2.0, 1.0]


def test_a_second_run_asks_for_no_visit_that_the_first_did_without() -> None:
    sessions = WatchedSessions(SETTINGS)
    tools = tools_for(sessions)
    request = MeasureRequest(BatchSizes(maximum=512), seconds=10.0, precision=0.04)
    measure(tools, request)
    calls = sessions.calls[0]
    measure(tools, request)
    assert sessions.calls[0] == calls


def test_steady_visits_end_the_timing_before_the_time_is_used_up() -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    request = MeasureRequest(BatchSizes(listed=(4, 8, 16)), seconds=10.0, precision=0.06)
    measure(tools, request)
    assert visits(tools) == {4: 2, 8: 2, 16: 2}
    measure(tools, replace(request, precision=0.001))
    assert visits(tools) == {4: 5, 8: 5, 16: 5}


def test_a_stale_measurement_is_named_and_not_used() -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    measure(tools, MeasureRequest(BatchSizes(maximum=8)))
    changed = replace(SETTINGS, dimension=5000)
    other = replace(tools, sessions=QuadraticSessions(changed))
    found = measure(other, MeasureRequest(BatchSizes(maximum=4)))
    assert [row.batch_size for row in found.table] == [1, 2, 4]
    assert any("is stale (model changed)" in message for message in said(other))


class FusedSession(WatchedSession):
    """Runs under XLA, as it says."""

    def describe(self) -> WorkloadDescription:
        plain = super().describe()
        fingerprint = replace(plain.fingerprint, configuration="with XLA")
        return replace(plain, fingerprint=fingerprint, configuration=Configuration(xla=True))


class FusedSessions(WatchedSessions):
    def open(self) -> TrainingSession:
        return FusedSession(self.settings, self.before, self.calls)


def test_other_options_leave_a_measurement_as_it_is() -> None:
    tools = tools_for(QuadraticSessions(SETTINGS))
    measure(tools, MeasureRequest(BatchSizes(maximum=8)))
    with_xla = replace(tools, sessions=FusedSessions(SETTINGS), progress=Heard())
    found = measure(with_xla, MeasureRequest(BatchSizes(maximum=4)))
    assert [row.batch_size for row in found.table] == [1, 2, 4]
    assert not any("stale" in message for message in said(with_xla))


@pytest.mark.parametrize("batch_size", [0, -3, 1001])
def test_a_listed_batch_size_outside_the_data_is_refused(batch_size: int) -> None:
    request = MeasureRequest(BatchSizes(listed=(4, batch_size)))
    with pytest.raises(WorkloadError, match=f"Batch size {batch_size} cannot be trained.*1,000"):
        measure(tools_for(QuadraticSessions(SETTINGS)), request)


def test_an_imprecise_measurement_is_done_again_for_longer() -> None:
    sessions = UnsteadySessions(replace(SETTINGS, fixed_s=0.05))
    tools = tools_for(sessions)
    short = measure(tools, MeasureRequest(BatchSizes(listed=(8,)), seconds=0.1))
    calls = sessions.calls[0]
    longer = measure(tools, MeasureRequest(BatchSizes(listed=(8,)), seconds=2.0))
    assert sessions.calls[0] > calls and longer.table[0].steps_timed > short.table[0].steps_timed


def test_memory_is_tried_again_by_the_next_command() -> None:
    full = [True]

    def before(batch_size: int, _call: int) -> None:
        if batch_size == 32 and full:
            raise OutOfMemoryError("no memory is left")

    tools = tools_for(WatchedSessions(SETTINGS, before))
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 16
    full.clear()
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 512


def test_a_kill_that_may_have_another_cause_is_believed_the_second_time_only() -> None:
    killed: list[int] = []

    def once(batch_size: int, _call: int) -> None:
        if batch_size == 32 and not killed:
            killed.append(batch_size)
            raise SuspectedMemoryError("the session died (signal SIGKILL)")

    def always(batch_size: int, _call: int) -> None:
        if batch_size == 32:
            raise SuspectedMemoryError("the session died (signal SIGKILL)")

    assert (
        measure(tools_for(WatchedSessions(SETTINGS, once)), MeasureRequest()).largest_feasible_batch_size
        == 512
    )
    found = measure(tools_for(WatchedSessions(SETTINGS, always)), MeasureRequest())
    assert found.largest_feasible_batch_size == 16
    assert found.table[-1].outcome is MeasurementOutcome.OUT_OF_MEMORY
