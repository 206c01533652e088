"""``advisor plan`` over a database that the noisy quadratic model left."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from advisor.cli import run
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes, MeasureRequest, RecommendRequest
from advisor.storage.store import open_store
from advisor.training.quadratic_session import QuadraticSessions
from advisor.workflows.measure import measure
from tests.workflows.conftest import recommend, tools_for

REQUEST = RecommendRequest(
    batch_sizes=BatchSizes(listed=(16, 64, 256)),
    max_examples_per_trial=10**9,
    seeds=1,
    prices=Prices(2.0, "EUR", 300),
)


@pytest.fixture(scope="module")
def advised(new_database: Callable[[str], str]) -> str:
    url = new_database("sqlite")
    advice = recommend(tools_for(QuadraticSessions()), REQUEST)
    store = open_store(url)
    store.save_description(advice.description)
    store.save_advice(advice)
    store.close()
    return url


@pytest.fixture
def plan(advised: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def type_in(*arguments: str) -> str:
        assert run(["plan", "--storage", advised, *arguments]) == 0
        return capsys.readouterr().out

    return type_in


def test_json_has_each_option_with_its_own_price(plan: Callable[..., str]) -> None:
    known = json.loads(plan("--devices", "1,2,4@0.5", "--price", "3", "--format", "json"))
    one, two, four = known["scenarios"]
    assert [scenario["devices"] for scenario in (one, two, four)] == [1, 2, 4]
    assert (one["speed_up"], one["efficiency"], one["extrapolated"]) == (1, 1, [])
    assert two["money"]["estimate"] == pytest.approx(3 * two["device_hours"]["estimate"])
    assert four["money"]["estimate"] == pytest.approx(0.5 * four["device_hours"]["estimate"])
    assert four["energy_kwh"]["estimate"] == pytest.approx(0.3 * four["device_hours"]["estimate"])
    assert "devices" in four["extrapolated"] and four["on_pareto_front"]
    assert known["synchronization"] == {"share": 0.0, "source": "unknown", "devices": None}
    assert known["currency"] == "EUR" and known["next"] is None


def test_the_text_marks_what_is_extrapolated(plan: Callable[..., str]) -> None:
    text = plan("--devices", "1,2,8@1.25", "--synchronization", "10%")
    assert max(map(len, text.splitlines())) <= 80 and "\x1b" not in text
    words = " ".join(text.split())
    assert "noisy-quadratic to reach validation loss at most 0.1" in words
    assert "at batch sizes 16 to 256 per device; trained at 16 to 256" in words
    assert "Beyond what was measured: d the number of devices" in words
    assert "takes 10 % of a step, as was assumed" in words
    assert re.search(r"^ +1\* .* 1\.00 +100 %$", text, re.MULTILINE)
    assert re.search(r"^ +8\* .* \d+ % +d$", text, re.MULTILINE)
    assert re.search(r"^ +8\* +1\.25 ", text, re.MULTILINE)


def test_csv_has_a_line_for_each_option(plan: Callable[..., str]) -> None:
    rows = list(csv.DictReader(io.StringIO(plan("--format", "csv"))))
    assert [row["devices"] for row in rows] == ["1", "2", "4", "8"]
    for row in rows:
        assert float(row["money_low"]) <= float(row["money"]) <= float(row["money_high"])
    assert rows[0]["extrapolated"] == "" and "devices" in rows[1]["extrapolated"].split()


def test_without_advice_it_shows_throughput_and_what_to_run(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url)
    measure(replace(tools_for(QuadraticSessions()), store=store), MeasureRequest(REQUEST.batch_sizes))
    store.close()
    assert run(["plan", "--storage", sqlite_url]) == 0
    text = capsys.readouterr().out
    assert "examples per s" in text and "advisor recommend" in text and "time to target" not in text


def test_an_empty_database_is_told_with_status_1(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--storage", sqlite_url]) == 1
    assert "Nothing is recorded in this database yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--devices", "0"], "'0' is not a number of devices from 1, such as 4"),
        (["--devices", "1,x"], "'x' is not a number of devices"),
        (["--devices", "2@"], "'2@' is not a number of devices"),
        (["--devices", "2@-1"], "'2@-1' is not a number of devices"),
        (["--devices", "2@nan"], "'2@nan' is not a number of devices"),
        (["--synchronization", "100%"], "'100%' is not a share of a step from 0% to below 100%"),
        (["--synchronization", "10"], "such as 10%"),
        (["--synchronization", "some"], "'some' is not a share"),
        (["--price", "nan"], "not a finite number"),
    ],
    ids=str,
)
def test_wrong_usage_is_told_with_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
