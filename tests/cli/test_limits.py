"""Objectives, limits and the rule of thumb, asked of what is recorded already."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

REQUEST = ["--batch-sizes", "32,128,512", "--trials", "5", "--seeds", "1"]


@pytest.fixture
def recorded(chain: Shell, tmp_path: Path) -> Shell:
    """A copy of the recorded chain, so that its advice stays as it is."""
    for file in chain.folder.glob("advisor.db*"):
        shutil.copy(file, tmp_path)
    return Shell(tmp_path)


def test_limits_upfront_costs_and_a_balance_are_answered_from_the_records(recorded: Shell) -> None:
    limits = ["--objective", "balanced", "--deadline", "1h", "--max-cost", "100", "--price", "2.5"]
    answer = recorded.json("recommend", *REQUEST, *limits, "--upfront-cost", "32=7")["recommendation"]
    assert (answer["objective"], answer["unmet"], answer["rule_of_thumb"]) == ("balanced", None, False)
    assert answer["time_to_target_s"]["high"] <= 3600 and answer["money"]["high"] <= 100
    assert answer["pareto"] == [answer["batch_size"]] and "the fastest is the cheapest" in answer["why"]
    assert answer["consumption"][0]["smaller"] == 32 and answer["consumption"][-1]["larger"] == 512
    (row,) = answer["break_even"]
    assert (row["batch_size"], row["upfront"]) == (32, 7) and row["against"] in (64, 128, 512)
    done = recorded("recommend", *REQUEST, "--deadline", "0.0001s", status=3)
    assert "No batch size is within the deadline of 100 µs" in done.stderr
    assert "the fastest found is batch size" in done.stderr and done.stdout == ""
    assert recorded.json("report")["recommend"]["recommendation"]["unmet"] in done.stderr


def test_money_without_a_price_is_refused_before_anything_is_done(recorded: Shell) -> None:
    done = recorded("recommend", "--max-cost", "20", status=1)
    assert done.stderr.startswith("Error: --max-cost compares money") and "--price" in done.stderr


def test_the_rule_of_thumb_needs_no_training(recorded: Shell) -> None:
    done = recorded("recommend", "--no-training", "--batch-sizes", "32,128,512")
    assert done.stdout.startswith(("Rule of thumb: Batch size 512 ", "Rule of thumb: Batch size 128 "))
    assert "rule of thumb and not an answer" in " ".join(done.stdout.split())
    assert "Measuring" not in done.stderr and "trial" not in done.stderr
