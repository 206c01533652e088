"""Each example by way of its study file, in a shortened form."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.toml"))
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_a_study_is_answered(study: Path, shell: Shell) -> None:
    answer = shell.json("recommend", str(study), "--batch-sizes", "64,128", "--trials", "4", "--seeds", "1")
    assert [row["batch_size"] for row in answer["steps_to_target"]] == [64, 128]
    assert answer["recommendation"]["batch_size"] in (64, 128)
    assert all(row["best"].keys() == {"learning_rate"} for row in answer["steps_to_target"])
    tuned = shell.json("tune", str(study), "--batch", "64", "--trials", "2", "--max-train-steps", "20")
    assert tuned["best"]["value"] > 0 and sum(tuned["trials"].values()) == 2
    assert shell.json("report")["recommend"] == answer


def test_every_example_has_its_study() -> None:
    told = "".join(study.read_text(encoding="utf-8") for study in STUDIES)
    assert EXAMPLES and all(f'workload = "../examples/{path.name}"' in told for path in EXAMPLES)


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_a_study_opens_with_what_it_asks(study: Path) -> None:
    head = study.read_text(encoding="utf-8")
    for word in ("Question", "Source", "Command", "Expected", "Duration"):
        assert f"# {word}: " in head
    assert f"advisor recommend studies/{study.name}" in head
