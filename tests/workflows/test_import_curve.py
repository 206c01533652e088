"""Imported curves get the fit and the advice of ``recommend``."""

from pathlib import Path

import pytest

from advisor.analysis.scaling import fit_scaling
from advisor.records.imported import ImportedRun, ImportRequest
from advisor.records.recommendation import Objective, Prices
from advisor.records.scaling import Crossing, FitOutcome, Observation
from advisor.reporting.progress import QuietProgress
from advisor.workflows.import_curve import DRAWS, import_curves

SIZES = (8, 16, 32, 64, 128, 256, 512)
MIN_STEPS, BEND = 50.0, 60.0


def run(size: int, task: str = "", timed: bool = False) -> ImportedRun:
    """A run on a hyperbola; a step takes 1 ms and 10 µs for each example."""
    steps = MIN_STEPS * (1 + BEND / size)
    return ImportedRun(
        size, Crossing(steps, steps, steps), task, time_per_step_s=1e-3 + 1e-5 * size if timed else None
    )


def imported(*runs: ImportedRun, **choices: object):  # type: ignore[no-untyped-def]
    request = ImportRequest(Path("curve.csv"), **choices)  # type: ignore[arg-type]
    return import_curves(runs, request, QuietProgress()).curves


def test_the_fit_is_that_of_recommend() -> None:
    runs = [run(size) for size in SIZES]
    (curve,) = imported(*runs, overhead=0.5, seed=3)
    observations = [Observation(one.batch_size, one.crossing) for one in runs]
    assert curve.advice.fit == fit_scaling(observations, [], SIZES, 0.5, 3, DRAWS)
    assert curve.advice.fit.half_efficiency_batch_size is not None
    assert curve.advice.fit.half_efficiency_batch_size.estimate == pytest.approx(BEND, rel=0.25)
    assert curve.advice.recommendation is None
    assert "time_per_step_s" in curve.missing


def test_the_fastest_of_the_measured_batch_sizes_is_recommended() -> None:
    (curve,) = imported(*(run(size, timed=True) for size in SIZES), prices=Prices(3600.0, "EUR"))
    found = curve.advice.recommendation
    assert found is not None and not curve.missing
    times_s = {size: MIN_STEPS * (1 + BEND / size) * (1e-3 + 1e-5 * size) for size in SIZES}
    assert times_s[found.batch_size] <= 1.025 * min(times_s.values())
    assert found.time_to_target_s.estimate == pytest.approx(times_s[found.batch_size])
    assert found.money is not None
    assert found.money.estimate == pytest.approx(times_s[found.batch_size])
    assert found.objective is Objective.TIME
    assert found.next == f"advisor tune WORKLOAD --batch {found.batch_size}"


def test_each_task_is_a_curve_of_its_own() -> None:
    runs = [run(size, task) for size in SIZES[:4] for task in ("b", "a")]
    first, second, third = imported(*runs, run(8, "few"), run(16, "few"))
    assert [first.task, second.task, third.task] == ["b", "a", "few"]
    assert first.advice.fit == second.advice.fit
    assert first.runs == 4
    assert third.advice.fit.outcome is FitOutcome.INSUFFICIENT


def test_too_few_batch_sizes_give_no_recommendation_even_with_times() -> None:
    (curve,) = imported(run(8, timed=True), run(16, timed=True))
    assert curve.advice.recommendation is None
    assert curve.missing.startswith("2 of 2 batch sizes reached the target (8, 16)")


def test_a_batch_size_that_never_arrived_enters_as_censored() -> None:
    runs = [run(size) for size in SIZES[:5]]
    never = ImportedRun(512, Crossing(None, 400.0, None))
    (without,), (with_it,) = imported(*runs), imported(*runs, never)
    fits = without.advice.fit, with_it.advice.fit
    assert fits[0].min_steps is not None and fits[1].min_steps is not None
    assert fits[1].min_steps.estimate > fits[0].min_steps.estimate
    assert with_it.advice.results[-1].censored
