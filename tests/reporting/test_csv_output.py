"""CSV is one table a spreadsheet reads, empty where nothing is known."""

import csv
from io import StringIO

import pytest

from advisor.records.recommendation import Prices
from advisor.reporting import csv_output
from tests.reporting import evidence


def read(text: str) -> list[dict[str, str]]:
    lines = list(csv.reader(StringIO(text)))
    assert {len(line) for line in lines} == {len(lines[0])}
    return list(csv.DictReader(StringIO(text)))


def test_measure_has_one_line_per_batch_size() -> None:
    rows = read(csv_output.measure(evidence.throughput()))
    assert [int(row["batch_size"]) for row in rows] == [*evidence.SIZES, 1024, 2048]
    assert float(rows[0]["time_per_step_s"]) == pytest.approx(2.24e-4)
    assert float(rows[0]["time_per_step_s_low"]) < float(rows[0]["time_per_step_s_high"])
    assert (rows[-1]["outcome"], rows[-1]["time_per_step_s"]) == ("dataset_limited", "")
    assert rows[-1]["detail"] == "1,397 training examples"


def test_recommend_has_steps_costs_and_hyperparameters() -> None:
    rows = read(csv_output.recommend(evidence.advice()))
    assert [int(row["batch_size"]) for row in rows] == [8, 16, 64, 128, 256, 512]
    assert float(rows[2]["steps"]) == pytest.approx(43.3, rel=0.01)
    assert float(rows[2]["money"]) > 0
    assert float(rows[2]["learning_rate"]) == pytest.approx(0.064)
    assert (rows[-1]["steps"], rows[-1]["censored"], rows[-1]["time_to_target_s"]) == ("", "True", "")
    unpriced = read(csv_output.recommend(evidence.advice(Prices())))
    assert unpriced[2]["money"] == ""


def test_a_rule_of_thumb_is_one_marked_line() -> None:
    (row,) = read(csv_output.rule_of_thumb(evidence.thumb()))
    assert (row["rule_of_thumb"], row["batch_size"], row["outcome"]) == ("True", "1024", "ok")
    assert float(row["throughput_examples_per_s"]) > 0


def test_tune_has_the_best_trial() -> None:
    (row,) = read(csv_output.tune(evidence.tuning()))
    assert (row["complete"], row["infeasible"], row["interrupted"]) == ("17", "3", "0")
    assert (row["best_trial"], row["activation"], float(row["best_value"])) == ("7", "[relu]", 0.08123)
    (nothing,) = read(csv_output.tune(evidence.tuning(best=False)))
    assert nothing["best_value"] == ""


def test_report_is_the_most_telling_table() -> None:
    assert csv_output.report(evidence.report()) == csv_output.recommend(evidence.advice())
    assert csv_output.report(evidence.empty_report()).strip() == ""


def test_studies_and_spending() -> None:
    rows = read(csv_output.studies([evidence.study(), evidence.study(diff="x")]))
    assert [row["uncommitted"] for row in rows] == ["False", "True"]
    assert rows[0]["command"] == "advisor tune --batch 64 --trials 20"
    (plan,) = read(csv_output.spending(evidence.spending()))
    assert (plan["batch_sizes"], plan["trials"]) == ("8 16 32", "98")
    assert (plan["expected_trials"], plan["expected_money"]) == ("20", "0.0217") and "expected" not in plan
