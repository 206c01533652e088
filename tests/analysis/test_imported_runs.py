"""What is made of the runs of a curve that another program measured."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.imported_notes import missing, notes
from advisor.analysis.imported_runs import by_batch_size, result_at, throughput_of
from advisor.records.imported import ImportedRun
from advisor.records.recommendation import Prices
from advisor.records.scaling import Crossing


def run(steps: float, rate: float | None = None, size: int = 64, **known: object) -> ImportedRun:
    return ImportedRun(size, Crossing(steps, steps, steps), learning_rate=rate, **known)  # type: ignore[arg-type]


def unreached(steps: float, rate: float | None = None, size: int = 64) -> ImportedRun:
    return ImportedRun(size, Crossing(None, steps, None), learning_rate=rate)


def test_the_best_learning_rate_has_the_least_geometric_mean() -> None:
    # The arithmetic means, 202 and 150, put the rates the other way round.
    runs = [run(4, 0.1), run(400, 0.1), run(150, 0.2), run(150, 0.2)]
    found = result_at(64, runs)
    assert found.best == {"learning_rate": 0.1}
    assert found.steps == pytest.approx(40)
    assert (found.trials, len(found.observations), found.at_edge) == (4, 2, True)


def test_a_learning_rate_that_mostly_fails_is_not_the_best() -> None:
    runs = [run(10, 0.4), unreached(20, 0.4), unreached(20, 0.4), run(100, 0.2), run(120, 0.2), run(300, 0.1)]
    found = result_at(64, runs)
    assert found.best == {"learning_rate": 0.2}
    assert not found.at_edge
    nothing = result_at(64, [unreached(500, 0.1), unreached(300, 0.2)])
    assert nothing.steps is None and nothing.censored and not nothing.at_edge
    # The best of all learning rates takes more than the least that was tried in vain.
    assert nothing.observations[0].crossing.low == 300


def test_failed_runs_of_the_best_learning_rate_leave_the_upper_end_open() -> None:
    found = result_at(64, [run(100), run(110), unreached(400)])
    assert found.steps_interval is not None
    assert math.isinf(found.steps_interval.high)
    assert found.best is None


@given(st.permutations([run(steps, rate) for rate in (0.1, 0.2, 0.4) for steps in (90 / rate, 110 / rate)]))
def test_the_order_of_lines_does_not_matter(runs: list[ImportedRun]) -> None:
    found = result_at(64, runs)
    assert found.best == {"learning_rate": 0.4}
    assert found.at_edge
    assert found.steps == pytest.approx(math.sqrt(90 * 110) / 0.4)


def test_times_are_those_of_all_runs_at_a_batch_size() -> None:
    runs = [run(100, 0.1, time_per_step_s=0.02), run(900, 0.2, time_per_step_s=0.03), run(9, size=8)]
    throughput = throughput_of("x", [*runs, run(50, size=128, time_per_step_s=0.05)])
    assert [row.batch_size for row in throughput.table] == [64, 128]
    first, second = (row.time_per_step_s for row in throughput.table)
    assert first is not None and second is not None
    assert first.estimate == pytest.approx(0.025)
    assert first.low < 0.02 and first.high > 0.03
    assert second.low == second.estimate == second.high == 0.05


def test_the_interval_of_a_time_covers_its_mean() -> None:
    random, covered = np.random.default_rng(0), 0
    for _ in range(400):
        times = np.maximum(random.normal(0.02, 0.001, size=4), 1e-3)
        row = throughput_of("", [run(9, time_per_step_s=float(time_s)) for time_s in times]).table[0]
        assert row.time_per_step_s is not None
        covered += row.time_per_step_s.low <= 0.02 <= row.time_per_step_s.high
    assert 0.92 <= covered / 400 <= 0.98


def test_batch_sizes_ascend() -> None:
    assert list(by_batch_size([run(1, size=size) for size in (64, 8, 64, 16)])) == [8, 16, 64]


def told(*runs: ImportedRun, prices: Prices | None = None) -> str:
    return " ".join(notes(runs, throughput_of("", runs), prices or Prices()))


def test_a_column_that_may_tell_curves_apart_is_named() -> None:
    kinds = [run(9, size=size, unread={"kind": kind}) for kind in "ab" for size in (1, 2, 4)]
    assert "they differ in kind (a, b). If it tells curves apart, say --column task=kind" in told(*kinds)
    assert "differ" not in told(*(run(9, size=size, unread={"kind": str(size)}) for size in (1, 2, 4)))
    assert "differ" not in told(*kinds[:3])


def test_notes_say_how_learning_rates_evaluations_and_times_were_taken() -> None:
    assert "Several learning rates were run at 1 of 2 batch sizes" in told(
        run(1, 0.1), run(2, 0.2), run(3, 1, 8)
    )
    assert "has one learning rate at each batch size" in told(run(1, 0.1), run(3, 1, 8))
    assert "names no learning rates" in told(run(1))
    assert "are taken as exact. Where they are known at evaluations" in told(run(1))
    assert "known at evaluations" not in told(ImportedRun(8, Crossing(15, 10, 20)))
    assert "tells once" in told(run(1, time_per_step_s=1))
    assert "one device" not in told(run(1, time_per_step_s=1))
    assert "one device" in told(run(1, time_per_step_s=1), prices=Prices(2.0))


@pytest.mark.parametrize(
    ("reached", "timed", "words"),
    [
        ((), (), "None of 4 batch sizes reached the target; a curve needs at least 3."),
        ((1, 2), (1, 2), "2 of 4 batch sizes reached the target (1, 2); a curve needs at least 3."),
        ((1, 2, 4), (), "it takes the time per step, in seconds, in a column time_per_step_s"),
        ((1, 2, 4), (4, 8), "the time per step at 2 batch sizes or more that reached the target, in seconds"),
        ((1, 2, 4), (2, 4), ""),
    ],
)
def test_what_is_missing_is_said(reached: tuple[int, ...], timed: tuple[int, ...], words: str) -> None:
    runs = [
        ImportedRun(
            size,
            Crossing(9, 9, 9) if size in reached else Crossing(None, 9, None),
            time_per_step_s=0.1 if size in timed else None,
        )
        for size in (1, 2, 4, 8)
    ]
    said = missing([result_at(one.batch_size, [one]) for one in runs], throughput_of("", runs))
    assert words in said
    assert bool(words) == bool(said)
