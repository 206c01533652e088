"""The search of the feasible range: every outcome told apart, the limit found and not overrun."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from advisor.errors import (
    OutOfMemoryError,
    SessionError,
    SessionTimeoutError,
    SuspectedMemoryError,
    WorkloadError,
)
from advisor.records.measurement import MeasurementOutcome, Throughput
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming, MemoryUse, Preparation, StepPart
from advisor.training.quadratic_session import QuadraticSettings
from advisor.workflows.measure import measure
from advisor.workflows.ports import TrainingSession
from tests.workflows.conftest import WatchedSession, WatchedSessions, said, tools_for

SETTINGS = QuadraticSettings(training_examples=1_000_000)
OUT_OF_MEMORY = MeasurementOutcome.OUT_OF_MEMORY


class LimitedSession(WatchedSession):
    """Takes 100 bytes and one for each example, two for each of the longest; fails at a limit."""

    limit = 600

    def reset(
        self, batch_size: int, hyperparameters: Mapping[str, HyperparameterValue], seed: int
    ) -> Preparation:
        self._used = 0
        return super().reset(batch_size, hyperparameters, seed)

    def train(self, steps: int) -> BlockTiming:
        self._take(100 + self._batch_size)
        return super().train(steps)

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        self._take(100 + self._batch_size * (2 if part is StepPart.LONGEST else 1))
        return super().train_part(part, steps)

    def memory(self) -> MemoryUse:
        return MemoryUse(self._used, self.limit, self._used)

    _used = 0

    def _take(self, needed: int) -> None:
        if needed > self.limit:
            raise OutOfMemoryError(f"{needed} bytes are not there.")
        self._used = max(self._used, needed)


@dataclass
class LimitedSessions(WatchedSessions):
    """Opens limited sessions and remembers which batch sizes were tried."""

    limit: int = 600

    def open(self) -> TrainingSession:
        self.opened += 1
        session = LimitedSession(self.settings, self.before, self.calls)
        session.limit = self.limit
        return session


def tried(sessions: LimitedSessions, request: MeasureRequest) -> tuple[Throughput, set[int]]:
    """Return what was measured, and the batch sizes at which a step was tried."""
    sizes: set[int] = set()
    sessions.before = lambda batch_size, _call: sizes.add(batch_size)
    found = measure(tools_for(sessions), request)
    return found, sizes


def outcomes(found: Throughput) -> dict[int, MeasurementOutcome]:
    return {row.batch_size: row.outcome for row in found.table}


def test_memory_ends_the_sweep_at_the_first_size_that_does_not_fit() -> None:
    found, sizes = tried(LimitedSessions(SETTINGS), MeasureRequest())
    assert found.largest_feasible_batch_size == 256
    assert outcomes(found)[512] is OUT_OF_MEMORY
    assert max(sizes) == 256  # at 512 memory fails before a step
    assert found.bottleneck is not None and found.bottleneck.kind.value == "memory"


def test_refining_finds_the_limit_to_a_sixteenth_and_only_sizes_that_ran_are_answers() -> None:
    found, sizes = tried(LimitedSessions(SETTINGS), MeasureRequest(refine=True))
    largest = found.largest_feasible_batch_size
    assert largest is not None
    assert 500 / (1 + 1 / 16) < largest <= 500
    assert largest in sizes
    assert len(found.table) <= 10 + 5


def test_a_size_that_must_fail_by_the_growth_so_far_is_not_run() -> None:
    sessions = LimitedSessions(SETTINGS)
    found, sizes = tried(sessions, MeasureRequest(BatchSizes(listed=(128, 256, 1024))))
    (row,) = (row for row in found.table if row.batch_size == 1024)
    assert row.outcome is OUT_OF_MEMORY
    assert "Not run: by the growth up to batch size 256" in row.detail
    assert sizes == {128, 256}
    assert found.largest_feasible_batch_size == 256


def test_sizes_near_the_limit_are_marked() -> None:
    found, _ = tried(LimitedSessions(SETTINGS, limit=360), MeasureRequest(BatchSizes(listed=(64, 256))))
    assert [row.near_memory_limit for row in found.table] == [False, True]
    assert any("Batch size 256 ran with less than 10 % of the memory free" in note for note in found.notes)


def test_the_longest_example_decides_what_fits() -> None:
    usual, _ = tried(LimitedSessions(SETTINGS), MeasureRequest())
    worst, _ = tried(LimitedSessions(SETTINGS), MeasureRequest(probe_longest=True))
    assert (usual.largest_feasible_batch_size, worst.largest_feasible_batch_size) == (256, 128)
    peaks = {row.batch_size: row.peak_memory_bytes for row in worst.table}
    assert peaks[128] == 100 + 2 * 128


def test_a_recorded_size_is_an_answer_only_under_what_is_asked_for_now() -> None:
    tools = tools_for(LimitedSessions(SETTINGS))
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 256
    assert measure(tools, MeasureRequest(probe_longest=True)).largest_feasible_batch_size == 128
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 256


@pytest.mark.parametrize("changed", [{"sessions": LimitedSessions(SETTINGS, limit=200)}, {}])
def test_larger_sizes_that_ran_under_less_strict_terms_are_no_answers(changed: dict[str, object]) -> None:
    tools = tools_for(LimitedSessions(SETTINGS))
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 256
    stricter = MeasureRequest(probe_longest=not changed)
    found = measure(replace(tools, **changed), stricter)  # type: ignore[arg-type]
    assert found.largest_feasible_batch_size == (64 if changed else 128)
    assert 256 not in outcomes(found) or outcomes(found)[256] is OUT_OF_MEMORY
    calls = tools.sessions.calls[0]  # type: ignore[attr-defined]
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 256
    assert tools.sessions.calls[0] == calls or not changed  # type: ignore[attr-defined]


def test_what_ran_once_stays_recorded_until_it_has_run_again() -> None:
    tools = tools_for(WatchedSessions(SETTINGS))
    sizes = BatchSizes(listed=(8, 16))
    before = measure(tools, MeasureRequest(sizes))

    def fail(_size: int, _call: int) -> None:
        raise SessionTimeoutError("no answer in 60 s")

    failing = replace(tools, sessions=WatchedSessions(SETTINGS, fail))
    assert set(outcomes(measure(failing, MeasureRequest(sizes, again=True))).values()) == {
        MeasurementOutcome.TIMEOUT
    }
    (run,) = tools.store.latest_measurements("noisy-quadratic")
    assert [row.outcome for row in run.measurements] == [MeasurementOutcome.OK] * 2
    assert measure(tools, MeasureRequest(sizes)).table == before.table


def test_measuring_again_times_everything_anew() -> None:
    sessions = WatchedSessions(SETTINGS)
    tools = tools_for(sessions)
    request = MeasureRequest(BatchSizes(listed=(8, 16)))
    measure(tools, request)
    calls = sessions.calls[0]
    measure(tools, replace(request, again=True))
    assert sessions.calls[0] == 2 * calls
    (run,) = tools.store.latest_measurements("noisy-quadratic")
    assert [len(row.visits) for row in run.measurements] == [2, 2]


def test_a_plain_run_after_a_probe_foretells_by_plain_sizes() -> None:
    class LongSession(LimitedSession):
        def train_part(self, part: StepPart, steps: int) -> BlockTiming:
            self._take(100 + self._batch_size * (7 if part is StepPart.LONGEST else 1))
            return WatchedSession.train_part(self, part, steps)

    class LongSessions(LimitedSessions):
        def open(self) -> TrainingSession:
            session = LongSession(self.settings, self.before, self.calls)
            session.limit = self.limit
            return session

    tools = tools_for(LongSessions(SETTINGS))
    assert measure(tools, MeasureRequest(probe_longest=True)).largest_feasible_batch_size == 64
    assert measure(tools, MeasureRequest()).largest_feasible_batch_size == 256


def test_sizes_close_together_are_no_growth_and_no_saturation() -> None:
    """A refined size a sixteenth above another gains little in any case: memory is what ends this sweep."""
    found, _ = tried(LimitedSessions(SETTINGS), MeasureRequest(refine=True))
    assert found.saturation_batch_size is None
    assert found.bottleneck is not None and found.bottleneck.kind.value == "memory"


def test_a_size_that_failed_is_no_limit_whatever_is_above_it() -> None:
    def before(batch_size: int, _call: int) -> None:
        if batch_size == 64:
            raise SessionError("the layer cannot do that")

    sessions = WatchedSessions(QuadraticSettings(training_examples=100, fixed_s=0.1), before)
    found = measure(tools_for(sessions), MeasureRequest())
    assert outcomes(found)[128] is MeasurementOutcome.DATASET_LIMITED
    assert found.bottleneck is not None and found.bottleneck.kind.value != "data"
    assert "Saturation not reached: throughput still grew at the largest batch size, 32." in found.notes


def test_a_fault_at_the_second_try_is_told_as_well() -> None:
    tries: list[int] = []

    def before(batch_size: int, _call: int) -> None:
        if batch_size == 32:
            tries.append(batch_size)
            raise WorkloadError("it cannot be read") if len(tries) > 1 else SuspectedMemoryError("killed")

    found = measure(tools_for(WatchedSessions(SETTINGS, before)), MeasureRequest(BatchSizes(maximum=64)))
    assert outcomes(found)[32] is MeasurementOutcome.FAILED
    assert outcomes(found)[64] is MeasurementOutcome.OK


def test_a_crash_is_no_limit_of_memory_until_a_smaller_size_has_passed() -> None:
    def crash_up_to_two(batch_size: int, _call: int) -> None:
        if batch_size <= 2:
            raise SuspectedMemoryError("the session died (signal SIGSEGV)")

    found = measure(
        tools_for(WatchedSessions(SETTINGS, crash_up_to_two)), MeasureRequest(BatchSizes(maximum=8))
    )
    assert outcomes(found) == {
        1: MeasurementOutcome.FAILED,
        2: MeasurementOutcome.FAILED,
        4: MeasurementOutcome.OK,
        8: MeasurementOutcome.OK,
    }


def test_a_cap_that_does_not_fit_is_never_the_answer() -> None:
    found, _ = tried(LimitedSessions(SETTINGS), MeasureRequest(BatchSizes(maximum=512)))
    assert found.largest_feasible_batch_size == 256
    listed, _ = tried(LimitedSessions(SETTINGS), MeasureRequest(BatchSizes(listed=(512,))))
    assert listed.largest_feasible_batch_size is None


def test_a_small_dataset_ends_the_sweep_at_once() -> None:
    found = measure(tools_for(WatchedSessions(QuadraticSettings(training_examples=100))), MeasureRequest())
    assert found.largest_feasible_batch_size == 64
    assert outcomes(found)[128] is MeasurementOutcome.DATASET_LIMITED
    assert max(outcomes(found)) == 128


def test_steps_much_longer_than_the_time_asked_for_are_few() -> None:
    slow = QuadraticSettings(training_examples=64, fixed_s=100.0)
    sessions = WatchedSessions(slow)
    found = measure(tools_for(sessions), MeasureRequest(BatchSizes(listed=(8,)), seconds=1.0))
    assert found.table[0].outcome is MeasurementOutcome.OK
    assert sessions.calls[0] == 4  # two to time the step, two beside its parts


def test_the_search_says_what_it_does() -> None:
    tools = tools_for(LimitedSessions(SETTINGS))
    measure(tools, MeasureRequest(BatchSizes(maximum=512)))
    heard = " ".join(said(tools))
    assert "Loading the workload." in heard
    assert "Measuring batch size 256." in heard
    assert "Batch size 512: 612 bytes are not there." in heard


@pytest.mark.parametrize("refine", [False, True])
def test_a_second_run_tries_what_did_not_fit_again_and_measures_nothing_else(refine: bool) -> None:
    sessions = LimitedSessions(SETTINGS)
    tools = tools_for(sessions)
    first = measure(tools, MeasureRequest(refine=refine))
    calls = sessions.calls[0]
    second = measure(tools, MeasureRequest(refine=refine))
    assert sessions.calls[0] == calls
    assert second.table == first.table
