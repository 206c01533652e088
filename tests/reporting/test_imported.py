"""Imported curves as text, JSON and CSV."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from advisor.records.imported import ImportedCurves, ImportedRun, ImportRequest
from advisor.records.scaling import Crossing
from advisor.reporting import imported
from advisor.reporting.progress import QuietProgress
from advisor.workflows.import_curve import import_curves


@pytest.fixture(scope="module")
def curves() -> ImportedCurves:
    """One curve with times and a run that failed, one without times, and one of two batch sizes."""
    runs = []
    for size in (8, 16, 32, 64, 128, 256):
        steps = 50 * (1 + 60 / size)
        exact = Crossing(steps, steps, steps)
        runs += [
            ImportedRun(size, exact, "timed", 0.001 * size, "1", 1e-3 + 1e-5 * size),
            ImportedRun(size, exact, "untimed"),
        ]
    runs += [run for run in runs[:2] for run in (ImportedRun(8 * len(run.task), run.crossing, "few"),)]
    runs.append(ImportedRun(256, Crossing(None, 900.0, None), "untimed"))
    return import_curves(runs, ImportRequest(Path("curve.csv")), QuietProgress())


def part(text: str, task: str) -> str:
    return text.partition(f"Curve {task}\n")[2].partition("\nCurve ")[0]


def test_a_curve_with_times_opens_with_its_recommendation(curves: ImportedCurves) -> None:
    told = part(imported.text(curves), "timed")
    assert told.startswith("Batch size ")
    assert " reaches the target in about " in told.partition("\n\n")[0].replace("\n", " ")
    assert "How sure: with 95 % confidence" in told
    assert "advisor tune WORKLOAD --batch " in told
    assert "time per step" in told and "learning rate" in told


def test_a_curve_without_times_gives_three_batch_sizes_and_says_what_is_missing(
    curves: ImportedCurves,
) -> None:
    told = part(imported.text(curves), "untimed")
    assert told.startswith("The critical batch size is ")
    words = " ".join(told.split())
    assert "To recommend a batch size it takes the time per step, in seconds, in a column" in words
    for name, where in (
        ("critical batch size", "examples 20 % above the fewest"),
        ("half-efficiency batch size", "examples twice the fewest"),
        ("maximum useful batch size", "steps 10 % above the fewest"),
    ):
        assert name in told and where in told
    assert "device-hours" not in told and "Spent" not in told
    row = next(line.split() for line in told.splitlines() if line.split()[:1] == ["256"])
    assert row[-2:] == ["2", "1"]


def test_a_curve_that_cannot_be_fitted_says_so_first(curves: ImportedCurves) -> None:
    told = part(imported.text(curves), "few")
    assert told.startswith("2 of 2 batch sizes reached the target (40, 56); a curve needs at least 3.")


def test_lines_fit_a_terminal_and_are_plain(curves: ImportedCurves) -> None:
    told = imported.text(curves)
    assert max(map(len, told.splitlines())) <= 80
    assert "\x1b" not in told
    assert "\x1b" in imported.text(curves, True)


def test_json_has_the_advice_of_each_curve(curves: ImportedCurves) -> None:
    told = json.loads(json.dumps(imported.as_json(curves), allow_nan=False))
    assert told["file"] == "curve.csv"
    timed, untimed, few = told["curves"]
    assert (timed["task"], timed["runs"], timed["missing"]) == ("timed", 6, None)
    assert timed["recommendation"]["batch_size"] in (64, 128, 256)
    assert untimed["recommendation"] is None and "time_per_step_s" in untimed["missing"]
    assert untimed["fit"]["half_efficiency_batch_size"]["estimate"] > 0
    assert few["fit"]["outcome"] == "insufficient"
    assert all(curve["notes"] for curve in told["curves"])
    assert not {"spent", "target", "configuration"} & timed.keys()


def test_csv_has_a_line_for_each_batch_size_of_each_curve(curves: ImportedCurves) -> None:
    rows = list(csv.DictReader(StringIO(imported.as_csv(curves))))
    assert [row["task"] for row in rows] == ["timed"] * 6 + ["untimed"] * 6 + ["few"] * 2
    assert float(rows[0]["steps"]) == pytest.approx(425)
    assert float(rows[0]["learning_rate"]) == pytest.approx(0.008)
    assert rows[6]["learning_rate"] == rows[6]["time_to_target_s"] == ""
