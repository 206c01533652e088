"""``advisor import`` from the command line, on published curves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.cli import run
from advisor.errors import SpecError

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "tests" / "assets"
MLPERF = (str(ASSETS / "mlperf_examples_to_target.csv"), "--column", "examples_to_target=examples")
QUADRATIC = (str(ASSETS / "nqm_ground_truth.csv"), "--column", "steps_to_target=steps")

Ask = Callable[..., Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs ``import`` in an empty folder; gives its JSON, or with another ``status`` its message."""
    monkeypatch.chdir(tmp_path)

    def asked(*arguments: str, status: int = 0) -> Any:
        assert run(["import", *arguments, "--quiet", "--format", "json"]) == status
        told = capsys.readouterr()
        if status in (0, 3):
            assert list(tmp_path.glob("*.db")) == []
        return json.loads(told.out) if status == 0 else told.err

    return asked


def test_the_example_shows_the_critical_batch_size_growing(ask: Ask) -> None:
    curves = ask(str(ROOT / "examples" / "language_models.csv"), "--column", "task=model_size")["curves"]
    assert [curve["task"] for curve in curves] == ["85M", "302M", "1.2B"]
    assert [curve["fit"]["outcome"] for curve in curves] == ["ok", "ok", "lower_bound"]
    critical = [curve["fit"]["critical_batch_size"]["estimate"] for curve in curves]
    assert critical == sorted(critical)


def test_the_noisy_quadratic_model_with_its_learning_rates(ask: Ask) -> None:
    first, second = ask(*QUADRATIC, "--column", "task=target_loss")["curves"]
    assert first["fit"]["half_efficiency_batch_size"]["estimate"] == pytest.approx(145, rel=0.1)
    assert second["fit"]["half_efficiency_batch_size"]["estimate"] == pytest.approx(1200, rel=0.1)
    assert first["steps_to_target"][0]["best"]["learning_rate"] == pytest.approx(0.0311, rel=0.01)
    (mixed,) = ask(*QUADRATIC)["curves"]
    assert "although they differ in target_loss (0.1, 0.01)" in mixed["notes"][0]


def test_only_the_lines_asked_for_are_read_and_examples_become_steps(ask: Ask) -> None:
    (curve,) = ask(*MLPERF, "--where", "benchmark=gpt3")["curves"]
    assert [row["batch_size"] for row in curve["steps_to_target"]][:2] == [1536, 2048]
    assert curve["fit"]["outcome"] == "lower_bound"
    assert 5e5 < curve["steps_to_target"][0]["steps"] < 1e6


def test_a_file_without_what_is_needed_is_refused_with_its_columns(ask: Ask) -> None:
    told = ask(str(ASSETS / "zhang2024_steps_to_target.csv"), status=1)
    assert "has no column steps_to_target (or examples_to_target or epochs_to_target)." in told
    assert "Its columns are model_size, batch_size, steps, steps_second_reading." in told
    assert "There is no file none.csv." in ask("none.csv", status=1)


def test_too_few_batch_sizes_are_status_3_with_what_was_found(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "few.csv"
    file.write_text("batch_size,steps_to_target,reached\n8,100,\n16,60,\n32,90,false\n")
    assert "2 of 3 batch sizes reached the target (8, 16)" in ask(str(file), status=3)
    assert run(["import", str(file), "--format", "csv", "--quiet"]) == 3
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize("option", ["--column", "--where"])
@pytest.mark.parametrize("value", ["seed", "=seed", ""])
def test_a_pair_without_its_halves_is_wrong_usage(ask: Ask, option: str, value: str) -> None:
    assert "is not two names with an equals sign between them" in ask("x.csv", option, value, status=2)


def test_prices_objective_and_overhead_reach_the_advice(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "timed.csv"
    lines = [f"{size},{50 * (1 + 60 / size)},{1e-3 + 1e-5 * size}" for size in (8, 32, 128, 512)]
    file.write_text("batch_size,steps_to_target,time_per_step_s\n" + "\n".join(lines) + "\n")
    priced = ("--price", "2", "--currency", "EUR", "--power", "300", "--objective", "cost")
    (curve,) = ask(str(file), *priced, "--overhead", "0.5")["curves"]
    assert (curve["currency"], curve["fit"]["overhead"]) == ("EUR", 0.5)
    assert curve["recommendation"]["objective"] == "cost"
    assert curve["recommendation"]["money"]["estimate"] > 0
    assert curve["steps_to_target"][0]["energy_kwh"]["estimate"] > 0


def test_the_python_api_answers_alike(tmp_path: Path) -> None:
    found = advisor.import_curve(
        ASSETS / "nqm_ground_truth.csv",
        columns={"steps_to_target": "steps"},
        where={"target_loss": "0.1"},
        prices={"currency": "EUR"},
    )
    (curve,) = found.curves
    assert curve.advice.prices.currency == "EUR"
    assert curve.advice.answers.critical is not None
    with pytest.raises(SpecError, match="Got overhead=0"):
        advisor.import_curve(tmp_path / "any.csv", overhead=0)


def test_limits_are_held_against_what_the_file_says(ask: Ask, tmp_path: Path) -> None:
    lines = ["batch_size,steps_to_target,time_per_step_s", "64,2450,0.018", "256,890,0.042", "1024,650,0.150"]
    file = tmp_path / "curve.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    (curve,) = ask(str(file), "--deadline", "1h", "--max-cost", "1", "--price", "2.5")["curves"]
    answer = curve["recommendation"]
    assert answer["unmet"] is None and answer["time_to_target_s"]["high"] <= 3600
    assert answer["money"]["high"] <= 1
    assert "within the deadline of 1.00 s" in ask(str(file), "--deadline", "1s", status=3)
    assert "--max-cost compares money" in ask(str(file), "--max-cost", "1", status=1)
    untimed = ask(*MLPERF, "--where", "benchmark=gpt3", "--deadline", "1h", status=3)
    assert "time_per_step_s" in untimed
