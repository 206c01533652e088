"""Bad input as a person would give it: one or two sentences, the right status, no traceback."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

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
