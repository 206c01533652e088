"""What the README tells people to type does what it says."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ADVISOR, Shell, dashboard

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORTENED = {
    "measure": ["--batch-sizes", "64", "--seconds", "0.1"],
    "recommend": ["--batch-sizes", "32,128", "--trials", "3", "--seeds", "1"],
    "tune": ["--trials", "2", "--max-train-steps", "50"],
    "report": [],
    "import": [],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> Iterator[str]:
    for block in blocks("sh"):
        yield from block.strip().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder with the README's workload, in which its commands have been run one after another."""
    shell = Shell(tmp_path_factory.mktemp("readme"))
    workload = next(block for block in blocks("python") if block.startswith("# my_workload.py"))
    (shell.folder / "my_workload.py").write_text(workload, encoding="utf-8")
    (curve,) = blocks("csv")
    (shell.folder / "curve.csv").write_text(curve, encoding="utf-8")
    for line in commands():
        program, *arguments = line.split()
        if program == "advisor" and arguments[0] in SHORTENED:
            shell(*arguments, *SHORTENED[arguments[0]])
    return shell


def test_every_command_is_one_that_is_run_here_or_by_ci() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for line in commands():
        program, *arguments = line.split()
        if program == "advisor":
            assert arguments[0] in {*SHORTENED, "dashboard"}
        elif program != "source":
            assert line in ci


def test_the_commands_find_what_the_readme_says(folder: Shell) -> None:
    known = folder.json("report")
    assert known["measure"]["workload"] == "my-workload"
    assert known["recommend"]["target"]["at_least"] == 0.9
    assert known["recommend"]["recommendation"]["batch_size"] in (32, 128)
    assert "dropout" in known["studies"][0]["best"]["hyperparameters"]
    with dashboard(folder.folder) as fetch:
        assert "my-workload" in fetch("/api/studies")


def test_the_curve_gives_a_recommendation(folder: Shell) -> None:
    (curve,) = folder.json("import", "curve.csv")["curves"]
    assert curve["recommendation"]["batch_size"] in (64, 256)
    assert len(curve["steps_to_target"]) == 3


def test_the_python_example_answers_from_an_unguarded_script(folder: Shell) -> None:
    example = next(block for block in blocks("python") if "advisor.recommend(" in block)
    script = example.replace('"my_workload.py"', '"my_workload.py", batch_sizes=[32, 128], seeds=1')
    (folder.folder / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder.folder, capture_output=True, text=True, check=True
    )
    assert re.match(r"(32|128) Batch size ", done.stdout)


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_command_in_the_table_exists() -> None:
    names = set(re.findall(r"^\| `advisor (\w+)", README, flags=re.MULTILINE))
    told = subprocess.run([ADVISOR, "--help"], capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  (\w+)  ", told.partition("Commands:")[2], flags=re.MULTILINE))
    assert names == listed
