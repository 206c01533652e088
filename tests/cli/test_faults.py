"""Bad input as a person would give it: one or two sentences, the right status, no traceback."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import ADVISOR, Shell

WORKLOAD = """
import numpy as np, keras
from advisor import Target, Workload

def build_model(hp):
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])

def load_data():
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    y = x.sum(axis=1, keepdims=True) + 100
    return {"train": (x[:30], y[:30]), "validation": (x[30:], y[30:])}

workload = Workload("line", build_model, load_data, loss="mean_squared_error", optimizer="sgd", TARGET)
"""


def write(folder: Path, target: str, name: str = "line.py") -> str:
    (folder / name).write_text(WORKLOAD.replace("TARGET", target), encoding="utf-8")
    return name


def test_a_missing_file(shell: Shell) -> None:
    assert "nowhere.py" in shell("measure", "nowhere.py", status=1).stderr


def test_a_target_that_is_never_reached_exits_with_3_and_what_was_found(shell: Shell) -> None:
    name = write(shell.folder, 'target=Target("loss", at_most=-1.0)')
    done = shell(
        "recommend", name, "--max-examples-per-trial", "90", "--trials", "2", "--seeds", "1", status=3
    )
    assert "No batch size reached the target" in done.stderr and "the best was" in done.stderr
    assert "--max-examples-per-trial" in done.stderr


def test_a_target_that_is_met_from_the_start(shell: Shell) -> None:
    name = write(shell.folder, 'target=Target("loss", at_most=1e9)')
    done = shell("recommend", name, status=1)
    assert "already meets the target" in done.stderr and "stricter" in done.stderr


def test_no_target(shell: Shell) -> None:
    done = shell("recommend", write(shell.folder, "target=None"), status=1)
    assert "has no target" in done.stderr and "loss" in done.stderr


def test_a_hyperparameter_that_cannot_be_retuned(shell: Shell) -> None:
    name = write(shell.folder, 'target=Target("loss", at_most=1.0)')
    done = shell("recommend", name, "--tune", "beta_1", status=1)
    assert "'beta_1'" in done.stderr and "learning_rate" in done.stderr


@pytest.mark.parametrize("batch_size", ["31", "0", "-4"])
def test_a_batch_size_that_the_data_cannot_fill(shell: Shell, batch_size: str) -> None:
    done = shell(
        "tune", write(shell.folder, 'target=Target("loss", at_most=1.0)'), "--batch", batch_size, status=1
    )
    assert f"Batch size {batch_size} cannot be trained" in done.stderr and "30" in done.stderr


def test_a_malformed_study_file_with_all_its_faults(shell: Shell) -> None:
    (shell.folder / "question.toml").write_text(
        'workload = "line.py"\ntarget = { metric = "loss" }\n[budget]\nsedes = 3\ntrials = "many"\n',
        encoding="utf-8",
    )
    message = shell("recommend", "question.toml", status=1).stderr
    assert "at_most" in message and "sedes" in message and "seeds" in message and "trials" in message


@pytest.mark.parametrize("arguments", [["studies"], ["studies", "--format", "json"], ["--help"]], ids=str)
def test_a_full_output_is_told(shell: Shell, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [ADVISOR, *arguments],
            cwd=shell.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == (
        "Error: Standard output cannot be written: No space left on device. What was recorded is kept; run "
        "this again with its output elsewhere.\n"
    )
    assert done.returncode == 1


@pytest.mark.parametrize("redirection", ["| true", ">&-"])
def test_an_output_that_nobody_reads_is_no_fault(shell: Shell, redirection: str) -> None:
    command = f"sleep 0.5; {ADVISOR} studies {redirection}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=shell.folder, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_an_empty_name_of_a_workload(shell: Shell) -> None:
    (shell.folder / "advisor.toml").write_text('workload = "line.py"\n', encoding="utf-8")
    for name in ("", " "):
        assert "Name one as file.py[:name]" in shell("measure", name, status=1).stderr


def test_a_damaged_record(shell: Shell) -> None:
    name = write(shell.folder, "target=None")
    shell("measure", name, "--batch-sizes", "4", "--seconds", "0.05")
    with closing(sqlite3.connect(shell.folder / "advisor.db")) as connection, connection:
        connection.execute("UPDATE advisor_description SET document = '{'")
    done = shell("report", status=1)
    assert "sqlite:///advisor.db holds a record (workload description) that is damaged" in done.stderr


def test_storage_that_is_no_database(shell: Shell) -> None:
    (shell.folder / "advisor.db").write_text("not a database " * 100, encoding="utf-8")
    assert "advisor.db" in shell("report", status=1).stderr


def test_storage_in_a_folder_that_does_not_exist(shell: Shell) -> None:
    assert "nowhere" in shell("report", "--storage", "sqlite:///nowhere/advisor.db", status=1).stderr


def test_another_program_s_database_is_left_alone(shell: Shell) -> None:
    path = shell.folder / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE advisor_trial (number TEXT)")
    connection.close()
    assert "other.db" in shell("report", "--storage", "sqlite:///other.db", status=1).stderr
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("advisor_trial",)]
    connection.close()


def test_a_report_before_anything_is_recorded(shell: Shell) -> None:
    assert "advisor recommend" in shell("report", status=1).stderr
