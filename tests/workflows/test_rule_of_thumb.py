"""Without training the measurement alone speaks; limits that nothing keeps end without an answer."""

from dataclasses import replace

import pytest

from advisor.errors import InconclusiveError
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes, MeasureRequest, RecommendRequest
from advisor.workflows.measure import measure
from advisor.workflows.rule_of_thumb import rule_of_thumb
from advisor.workflows.tools import Tools
from tests.workflows.conftest import recommend, said

REQUEST = RecommendRequest(batch_sizes=BatchSizes(16, 256), max_examples_per_trial=10**9, seeds=1)


def test_what_is_missing_is_measured_and_nothing_is_trained(quadratic: Tools) -> None:
    found = rule_of_thumb(quadratic, replace(REQUEST, workload_argument="a.py"))
    assert (found.batch_size, found.next) == (256, "advisor recommend a.py")
    assert found.throughput.largest_feasible_batch_size == 256
    assert not quadratic.store.studies() and not any("trial" in message for message in said(quadratic))


def test_what_is_measured_is_not_measured_again(quadratic: Tools) -> None:
    measured = measure(quadratic, MeasureRequest(batch_sizes=REQUEST.batch_sizes))
    assert rule_of_thumb(quadratic, REQUEST).throughput.table == measured.table


def test_limits_that_nothing_keeps_are_told_and_the_advice_is_kept(quadratic: Tools) -> None:
    within = recommend(quadratic, replace(REQUEST, deadline_s=1e6, max_cost=1e6, prices=Prices(2.5)))
    assert within.recommendation is not None and not within.recommendation.unmet
    with pytest.raises(InconclusiveError, match="No batch size is within the deadline of") as seen:
        recommend(quadratic, replace(REQUEST, deadline_s=1e-3))
    kept = quadratic.store.latest_advice(within.description.name)
    assert kept is not None and kept.recommendation is not None
    assert kept.recommendation.unmet == str(seen.value)
    assert f"batch size {kept.answers.fastest_to_target:,}" in str(seen.value)
