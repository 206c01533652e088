"""What is looked into at the batch size of the verdict, and what a failure there costs."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from advisor.errors import SessionError
from advisor.records.bottleneck import BottleneckKind, InputDiagnosis
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.training.quadratic_session import QuadraticSettings
from advisor.workflows.measure import measure
from advisor.workflows.ports import TrainingSession
from tests.workflows.conftest import WatchedSession, WatchedSessions, tools_for

REQUEST = MeasureRequest(BatchSizes(listed=(64, 128, 256)), seconds=0.2)
HEALTHY = QuadraticSettings(input_share=0.1)
HUNGRY = QuadraticSettings(input_share=5.0)


class DiagnosedSession(WatchedSession):
    """Remembers how it was asked to look into its pipeline; may fail at it."""

    asked: list[tuple[float, int]]
    fails = False

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        self.asked.append((seconds, input_workers))
        if self.fails:
            raise SessionError("the pipeline cannot be read")
        return replace(super().diagnose(seconds, input_workers), input_workers=input_workers)

    def profile(self, folder: Path, steps: int) -> list[Path]:
        if self.fails:
            raise SessionError("the profiler is not available")
        return [folder / "trace.json.gz"]


@dataclass
class DiagnosedSessions(WatchedSessions):
    fails: bool = False

    def __post_init__(self) -> None:
        self.asked: list[tuple[float, int]] = []

    def open(self) -> TrainingSession:
        self.opened += 1
        session = DiagnosedSession(self.settings, self.before, self.calls)
        session.asked, session.fails = self.asked, self.fails
        return session


def test_a_hungry_step_is_found_and_its_pipeline_looked_into_once() -> None:
    sessions = DiagnosedSessions(HUNGRY)
    tools = tools_for(sessions)
    found = measure(tools, REQUEST)
    assert found.bottleneck is not None
    assert found.bottleneck.kind is BottleneckKind.INPUT
    assert found.bottleneck.share is not None
    assert found.bottleneck.share.estimate == pytest.approx(0.8, abs=0.02)
    assert found.diagnosis is not None
    ((seconds, workers),) = sessions.asked
    assert (seconds > 0, workers) == (True, 0)
    assert measure(tools, REQUEST) == found
    assert len(sessions.asked) == 1


def test_nothing_is_tried_on_a_healthy_pipeline() -> None:
    sessions = DiagnosedSessions(HEALTHY)
    found = measure(tools_for(sessions), REQUEST)
    assert found.bottleneck is not None
    assert found.bottleneck.kind is not BottleneckKind.INPUT
    assert sessions.asked == [(0.0, 0)]


def test_more_producers_are_tried_where_they_are_asked_for() -> None:
    sessions = DiagnosedSessions(HEALTHY)
    tools = tools_for(sessions)
    measure(tools, REQUEST)
    for _ in range(2):
        measure(tools, replace(REQUEST, input_workers=2))
    assert [workers for _, workers in sessions.asked] == [0, 2]
    assert sessions.asked[1][0] > 0


def test_only_the_batch_size_of_the_verdict_is_looked_into() -> None:
    found = measure(tools_for(DiagnosedSessions(HEALTHY)), REQUEST)
    timed = [row.batch_size for row in found.table if row.compute_time_s is not None]
    assert found.bottleneck is not None
    assert timed == [found.bottleneck.batch_size]


def test_where_it_fails_the_table_and_a_verdict_still_stand(tmp_path: Path) -> None:
    sessions = DiagnosedSessions(HUNGRY, fails=True)
    tools = tools_for(sessions)
    found = measure(tools, replace(REQUEST, profile=tmp_path))
    assert found.bottleneck is not None
    assert found.bottleneck.kind is BottleneckKind.INPUT
    assert all(row.time_per_step_s is not None for row in found.table)
    assert "The step could not be looked into: the pipeline cannot be read" in found.notes
    assert "The step could not be profiled: the profiler is not available" in found.notes


def test_a_diagnosis_that_failed_is_made_up_by_the_next_run() -> None:
    failing, tools = DiagnosedSessions(HUNGRY, fails=True), tools_for(DiagnosedSessions(HUNGRY))
    assert measure(replace(tools, sessions=failing), REQUEST).diagnosis is None
    assert measure(tools, REQUEST).diagnosis is not None


def test_a_profile_is_written_although_the_pipeline_cannot_be_looked_into(tmp_path: Path) -> None:
    class Unreadable(DiagnosedSession):
        def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
            raise SessionError("the pipeline cannot be read")

    class Sessions(DiagnosedSessions):
        def open(self) -> TrainingSession:
            return Unreadable(self.settings, self.before, self.calls)

    found = measure(tools_for(Sessions(HUNGRY)), replace(REQUEST, profile=tmp_path))
    assert any(str(tmp_path / "trace.json.gz") in note for note in found.notes)


def test_the_files_of_a_profile_are_named(tmp_path: Path) -> None:
    found = measure(tools_for(DiagnosedSessions(HEALTHY)), replace(REQUEST, profile=tmp_path))
    assert any(str(tmp_path / "trace.json.gz") in note for note in found.notes)


def test_each_variant_is_timed_twice_in_turn_with_the_others() -> None:
    order: list[tuple[str, int]] = []

    def noted(name: str) -> DiagnosedSessions:
        def before(size: int, _call: int) -> None:
            if order[-1:] != [(name, size)]:
                order.append((name, size))

        return DiagnosedSessions(HEALTHY, before)

    tools = tools_for(noted("plain"))
    listed = BatchSizes(listed=(16, 32, 64, 128))
    found = measure(tools, replace(REQUEST, batch_sizes=listed), {"fast": noted("fast")})
    once = [(name, size) for size in (16, 32, 64) for name in ("plain", "fast")]
    again = [(name, 16) for name in ("plain", "fast")]
    assert order[:8] == once + again
    assert all(order.count(("fast", size)) == 2 for size in listed.listed)
    assert set(found.comparisons[0].speedups) == set(listed.listed)


def test_variants_are_measured_side_by_side_and_a_broken_one_costs_nothing() -> None:
    class Broken(WatchedSessions):
        def open(self) -> TrainingSession:
            raise SessionError("it cannot be compiled")

    tools = tools_for(DiagnosedSessions(QuadraticSettings(input_share=0.1)))
    fast = DiagnosedSessions(QuadraticSettings(fixed_s=5e-4, per_example_s=5e-6, input_share=0.1))
    found = measure(tools, REQUEST, {"fast": fast, "broken": Broken(HEALTHY)})
    measured = found.comparisons[0]
    assert measured.variant == "fast"
    assert {size: round(one.estimate, 3) for size, one in measured.speedups.items()} == dict.fromkeys(
        (64, 128, 256), 2.0
    )
    assert found.comparisons[1].failures == ("it cannot be compiled",)
    assert found.table == measure(tools, REQUEST).table
