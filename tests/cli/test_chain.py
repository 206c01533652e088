import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ADVISOR, Shell, dashboard


def test_measure_gives_the_recorded_table_without_measuring(chain: Shell) -> None:
    done = chain("measure", "--batch-sizes", "32,128,512", "--format", "json")
    assert "Measuring" not in done.stderr
    known = json.loads(done.stdout)
    assert known == chain.json("report")["measure"]
    rows = {row["batch_size"]: row for row in known["measurements"]}
    assert {32, 128, 512} <= rows.keys()
    for batch_size, row in rows.items():
        step = row["time_per_step_s"]
        assert row["outcome"] == "ok" and 0 < step["low"] < step["estimate"] < step["high"]
        throughput = row["throughput_examples_per_s"]["estimate"]
        assert throughput == pytest.approx(batch_size / step["estimate"])


def test_recommend_answers_from_its_records(chain: Shell) -> None:
    request = ["--batch-sizes", "32,128,512", "--trials", "5", "--seeds", "1", "--price", "2.5"]
    done = chain("recommend", *request, "--format", "json")
    assert "trial with" not in done.stderr and "fresh seed with" not in done.stderr
    answer = json.loads(done.stdout)
    assert [row["batch_size"] for row in answer["steps_to_target"]] == [32, 128, 512]
    for row in answer["steps_to_target"]:
        product = row["steps"] * row["time_per_step_s"]["estimate"]
        assert row["time_to_target_s"]["estimate"] == pytest.approx(product, rel=0.01)
        hours = row["device_hours"]["estimate"]
        assert row["money"]["estimate"] == pytest.approx(2.5 * hours)
    assert answer["recommendation"]["batch_size"] in (32, 128, 512)
    assert answer["recommendation"]["next"].startswith("advisor tune --batch ")


def test_steps_fall_with_the_batch_size_and_examples_rise(chain: Shell) -> None:
    rows = chain.json("report")["recommend"]["steps_to_target"]
    steps = [row["steps"] for row in rows]
    assert steps[0] > steps[-1]
    assert 32 * steps[0] < 512 * steps[-1]


def test_dry_run_says_what_may_be_spent_and_trains_nothing(chain: Shell) -> None:
    before = len(chain.json("studies"))
    expected = chain.json("recommend", "--batch-sizes", "64,256", "--dry-run")
    assert expected["trials"] > 0 and expected["seconds"] > 0
    assert len(chain.json("studies")) == before


def test_tune_goes_on_and_keeps_one_checkpoint(chain: Shell) -> None:
    result = chain.json("tune", "--batch", "128", "--trials", "4", "--max-train-steps", "40")
    assert sum(result["trials"].values()) == 4
    best = result["best"]
    assert Path(best["checkpoint"]).exists()
    kept = list((chain.folder / "advisor-artifacts").rglob("*.npz"))
    assert [path.resolve() for path in kept] == [Path(best["checkpoint"])]
    assert 1 <= best["step"] <= 40


def test_tune_refuses_another_length(chain: Shell) -> None:
    done = chain("tune", "--batch", "128", "--trials", "4", "--max-train-steps", "50", status=1)
    assert "max_train_steps = 40, and 50 was asked for" in done.stderr


def test_report_tells_everything(chain: Shell) -> None:
    text = chain("report").stdout
    for words in ("Training throughput of digits", "critical batch size", "Study digits/", "device-hours"):
        assert words in text
    prose = [line for line in text.splitlines() if not line.startswith("    /")]
    assert max(map(len, prose)) <= 80
    known = chain.json("report")
    assert known["measure"]["workload"] == "digits"
    assert [study["batch_size"] for study in known["studies"]] == [128]


def test_studies_name_their_command(chain: Shell) -> None:
    studies = chain.json("studies")
    names = [study["name"] for study in studies]
    fingerprint = names[0].split("/")[1]
    assert f"digits/{fingerprint}/tune/b128" in names
    assert f"digits/{fingerprint}/steps-to-target/b32" in names
    assert all(study["command"].startswith("advisor ") for study in studies)


def test_a_name_that_no_study_has_is_told_with_those_that_there_are(chain: Shell) -> None:
    message = chain("studies", "digit", status=1).stderr
    assert "'digit'" in message and "studies of digits" in message


def test_one_study_tells_what_was_not_committed(chain: Shell) -> None:
    name = chain.json("studies")[0]["name"]
    assert "Changes that were not committed:" in chain("studies", name).stdout


@pytest.mark.parametrize("command", [["measure", "--batch-sizes", "32"], ["report"], ["studies"]])
def test_csv_has_a_header_and_rows(chain: Shell, command: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(chain(*command, "--format", "csv").stdout)))
    assert rows and all(None not in row for row in rows)


def test_the_dashboard_shows_studies_and_notes(chain: Shell) -> None:
    with dashboard(chain.folder) as fetch:
        studies = json.loads(fetch("/api/studies"))["study_summaries"]
        names = {study["study_name"]: study["study_id"] for study in studies}
        searched = next(name for name in names if name.endswith("steps-to-target/b32"))
        tuned = next(name for name in names if name.endswith("tune/b128"))
        detail = json.loads(fetch(f"/api/studies/{names[searched]}"))
        assert "steps" in detail["note"]["body"] and len(detail["trials"]) >= 2
        assert all(trial["intermediate_values"] for trial in detail["trials"])
        assert "best" in json.loads(fetch(f"/api/studies/{names[tuned]}"))["note"]["body"]


def test_an_interrupted_command_is_gone_on_with(shell: Shell) -> None:
    command = ["recommend", "--batch-sizes", "16,64", "--trials", "3", "--seeds", "1"]
    process = subprocess.Popen(
        [ADVISOR, *command], cwd=shell.folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    trainings = 0
    for line in process.stderr:
        trainings += "trial with" in line
        if trainings == 2:
            os.killpg(process.pid, signal.SIGINT)
            break
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130, rest
    assert "To go on: advisor recommend --batch-sizes 16,64" in rest
    states = raw_states(shell.folder / "advisor.db")
    assert states and "RUNNING" not in states
    resumed = shell(*command)
    assert resumed.stderr.count("trial with") < 6 and "Batch size " in resumed.stdout


def raw_states(path: Path) -> list[str]:
    """Return the states of all trials as they stand in the database, before anything tidies them up."""
    connection = sqlite3.connect(path)
    try:
        return [state for (state,) in connection.execute("SELECT state FROM advisor_trial")]
    finally:
        connection.close()
