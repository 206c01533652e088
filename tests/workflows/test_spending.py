"""What is expected beside what is bounded."""

import pytest

from advisor.analysis.throughput import summarize
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.training.quadratic_session import QuadraticSessions
from advisor.workflows.recommend import plan
from advisor.workflows.spending import expected_spending, planned, spending_sentence, spread_evenly
from tests.analysis.evidence import run
from tests.workflows.conftest import recommend, tools_for

THROUGHPUT = summarize(run({8: 1e-3, 16: 1e-3, 32: 1e-3}))
PRICES = Prices(3.6, "EUR")


def test_without_records_the_assumption_is_used_and_said() -> None:
    found = expected_spending([8, 16], 12, 2, 1600, THROUGHPUT, PRICES, [])
    assert (found.trials, found.examples) == (14, 14 * 160)
    assert found.seconds == pytest.approx(7 * 160 * (1e-3 / 8 + 1e-3 / 16), rel=0.01)
    assert found.money == pytest.approx(found.seconds * 1e-3)
    assert "assuming 5 trials and 2 fresh seeds" in found.basis and "10%" in found.basis


def test_recorded_trainings_take_the_place_of_the_assumption() -> None:
    tools = tools_for(QuadraticSessions())
    request = RecommendRequest(batch_sizes=BatchSizes(listed=(16, 64, 256)), max_examples_per_trial=10**8)
    used = recommend(tools, request).spent
    more = BatchSizes(listed=(8, 16, 32, 64, 128, 256))
    expected = plan(tools, RecommendRequest(batch_sizes=more, max_examples_per_trial=10**8)).expected
    assert expected is not None and f"{used.trials} trainings recorded" in expected.basis
    assert expected.trials == used.trials
    assert expected.examples == pytest.approx(used.examples, rel=1e-6)
    done = plan(tools, request).expected
    assert done is not None and (done.trials, done.examples, done.seconds) == (0, 0, 0)


def test_the_sentence_has_the_bound_and_what_is_expected() -> None:
    expected = expected_spending([8, 16], 12, 2, 1600, THROUGHPUT, PRICES, [])
    said = spending_sentence(planned([8, 16], 20, 1600, THROUGHPUT, PRICES, 3, expected))
    assert said.startswith("At most 40 trainings") and "EUR" in said
    assert "Expected: 14 trainings" in said and "Recorded already: 3 trainings" in said


def test_the_limit_may_differ_between_batch_sizes() -> None:
    found = planned([8, 16], 2, {8: 100, 16: 300}, THROUGHPUT, PRICES, 0)
    assert (found.trials, found.examples) == (4, 800)


def test_batch_sizes_are_spread_from_end_to_end() -> None:
    assert spread_evenly([1, 2, 4, 8, 16, 32, 64, 128, 256], 5) == [1, 4, 16, 64, 256]
    assert spread_evenly([1, 2], 5) == [1, 2]


def test_few_trials_are_expected_where_few_are_allowed() -> None:
    found = expected_spending([8, 16], 3, 1, 1600, THROUGHPUT, PRICES, [])
    assert found.trials == 2 * (3 + 1)
    assert found.basis.startswith("assuming 3 trials and 1 fresh seed at each batch size")
