"""The two questions that need no target, asked of the bundled digits and of a user who errs."""

import csv
import io

import pytest

from advisor.cli import run
from tests.cli.conftest import Shell

SIZES = ["--batch-sizes", "32,256", "--trials", "2"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder in which both questions are asked."""
    return Shell(tmp_path_factory.mktemp("without-target"))


def test_batch_sizes_are_compared_and_recorded(shell: Shell) -> None:
    found = shell.json("recommend", "--compare-at", "steps=30", *SIZES)
    assert (found["metric"], found["budget"]) == ("loss", {"steps": 30})
    first, second = found["batch_sizes"]
    assert (first["batch_size"], second["batch_size"]) == (32, 256)
    assert first["value"] < 2.3 and second["value"] < 2.3
    assert all(len(row["values"]) == 2 and row["steps"] == 30 for row in (first, second))
    assert found["best_batch_size"] in found["agree_with_the_best"]
    assert "see more data" in found["caveats"][0]
    done = shell("recommend", "--compare-at", "steps=30", *SIZES, "--dry-run", "--format", "csv")
    (plan,) = csv.DictReader(io.StringIO(done.stdout))
    assert int(plan["already_recorded_trials"]) == found["spent"]["trials"]
    assert plan["expected_trials"] == "0"


def test_a_target_is_proposed_that_the_digits_reach(shell: Shell) -> None:
    found = shell.json("recommend", "--pilot", *SIZES)
    assert found["target"]["metric"] == "accuracy" and 0.5 < found["target"]["at_least"] <= 1
    assert len(found["seeds"]) == 3
    assert all(seed["steps"] <= 0.8 * found["max_train_steps"] for seed in found["seeds"])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--compare-at", "epochs=3"], 1, "valid is steps=N or examples=N"),
        (["--compare-at", "steps=0"], 1, "valid is a whole number of at least 1"),
        (["--compare-at", "steps=9", "--pilot"], 2, "two questions"),
        (["--metric", "loss"], 2, "--metric goes with --pilot or --compare-at"),
        (["--pilot", "--objective", "cost"], 2, "--pilot trains to no target: leave out --objective"),
        (["--compare-at", "steps=9", "--no-training"], 2, "leave out --no-training"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_told(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["recommend", *arguments]) == status
    assert words in " ".join(capsys.readouterr().err.split())
