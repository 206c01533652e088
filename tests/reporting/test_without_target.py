"""Comparisons under a budget and proposed targets, as people and programs read them."""

import csv
import json
import tomllib
from dataclasses import replace
from io import StringIO

from advisor.records.budget_comparison import Agreement, Budget, BudgetComparison, BudgetKind, BudgetResult
from advisor.records.description import Configuration
from advisor.records.intervals import Interval
from advisor.records.pilot import Pilot, PilotSeed
from advisor.records.target import Target
from advisor.reporting import budget_comparison, pilot
from tests.reporting.evidence import SPENT

RATE = {"learning_rate": 0.64}
TIME = Interval(0.1, 0.09, 0.12)
COMPARISON = BudgetComparison(
    workload="digits",
    configuration=Configuration(),
    metric="accuracy",
    maximize=True,
    budget=Budget(BudgetKind.EXAMPLES, 10_240),
    results=(
        BudgetResult(32, 320, RATE, False, 7, 0, (0.95, 0.96), 0, TIME),
        BudgetResult(256, 40, RATE, True, 8, 3, (0.81, 0.8), 0, TIME),
        BudgetResult(512, 20, None, False, 5, 5, (), 2, None),
    ),
    agreement=Agreement(32, (32,), 0.007, "Batch size 32 is better than all others."),
    caveats=("Larger batches look worse than they are.",),
    spent=SPENT,
    next="advisor recommend digits.py",
)
PILOT = Pilot(
    workload="digits",
    configuration=Configuration(),
    target=Target("accuracy", at_least=0.93),
    batch_size=32,
    max_steps=219,
    epochs=5.02,
    best=RATE,
    seeds=(PilotSeed(1, 0.931, 0.95, 120.5, 0.06), PilotSeed(2, 0.94, 0.96, 99.5, 0.04)),
    initial_value=0.1,
    rule="the worst of 2 fresh seeds",
    caveats=("It is a target of a short training.",),
    spent=SPENT,
    next="advisor recommend digits.py",
)


def words(text: str) -> str:
    return " ".join(text.split())


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def test_a_comparison_says_who_agrees_and_what_to_mind() -> None:
    plain = budget_comparison.as_text(COMPARISON)
    assert max(map(len, plain.splitlines())) <= 80
    text = words(plain)
    assert text.startswith("Batch size 32 is better than all others. - Larger batches look worse")
    assert "Best validation accuracy within 10,240 examples" in text
    assert "32 320 0.955 = 0.95–0.96 100 ms" in text
    assert "256 40 0.805 0.8–0.81 100 ms 3 learning_rate 0.64" in text
    assert "512 20 diverged 5" in text and text.endswith("advisor recommend digits.py")


def test_a_comparison_as_json_has_every_seed() -> None:
    found = json.loads(json.dumps(budget_comparison.as_json(COMPARISON), allow_nan=False))
    assert (found["budget"], found["best_batch_size"]) == ({"examples": 10_240}, 32)
    assert [row["value"] for row in found["batch_sizes"]] == [0.955, 0.805, None]
    assert found["batch_sizes"][0]["values"] == [0.95, 0.96]
    assert found["agree_with_the_best"] == [32] and found["run_to_run_spread"] == 0.007


def test_a_comparison_as_csv_has_one_line_per_batch_size() -> None:
    found = rows(budget_comparison.as_csv(COMPARISON))
    assert [row["agrees_with_the_best"] for row in found] == ["True", "False", "False"]
    assert (found[0]["examples"], found[2]["value"], found[2]["time_s"]) == ("10240", "", "")


def test_a_proposal_gives_the_line_that_sets_it() -> None:
    plain = pilot.as_text(PILOT)
    assert max(map(len, plain.splitlines())) <= 80
    text = words(plain)
    assert text.startswith("Proposed target: validation accuracy at least 0.93.")
    assert "At batch size 32 it took 110 steps and 50.0 ms of training" in text
    assert '    target=Target("accuracy", at_least=0.93),\n' in plain
    assert '    target = { metric = "accuracy", at_least = 0.93 }\n' in plain
    assert "Rule: the worst of 2 fresh seeds." in text
    loss = replace(PILOT, target=Target("loss", at_most=2e-05))
    line = pilot.as_json(loss)["line"]
    assert tomllib.loads(line) == {"target": {"metric": "loss", "at_most": 2e-05}}


def test_a_proposal_as_json_and_csv() -> None:
    found = json.loads(json.dumps(pilot.as_json(PILOT), allow_nan=False))
    assert found["target"] == {"metric": "accuracy", "at_least": 0.93, "at_most": None}
    assert (found["steps"], found["time_s"], found["initial_value"]) == (110, 0.05, 0.1)
    assert [seed["steps"] for seed in found["seeds"]] == [120.5, 99.5]
    lines = rows(pilot.as_csv(PILOT))
    assert [line["seed"] for line in lines] == ["1", "2"] and lines[0]["at_least"] == "0.93"
