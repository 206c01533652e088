"""Records as plain JSON and back, exactly, and across versions of the program."""

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import StorageError
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Advice
from advisor.records.scaling import FitOutcome, ScalingFit
from advisor.records.search_space import Categorical, Float, Int
from advisor.records.trials import CurvePoint, Study, TrialPlan, TrialPurpose
from advisor.storage.codec import from_json, from_plain, to_json, to_plain
from tests.contracts import samples


@dataclass(frozen=True)
class _Space:
    space: dict[str, Float | Int | Categorical]


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
hyperparameters = st.dictionaries(
    st.text(max_size=8), st.floats(allow_nan=False) | st.integers() | st.booleans() | st.text(max_size=8)
)
reals = st.floats(allow_nan=False, allow_infinity=False)


@given(plain_values)
def test_any_plain_value_survives_as_strict_json(value: object) -> None:
    written = to_json(value)
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert repr(from_json(written)) == repr(value)


@given(hyperparameters, st.integers(min_value=0), st.sampled_from(TrialPurpose))
def test_any_plan_survives(values: dict[str, float], seed: int, purpose: TrialPurpose) -> None:
    plan = TrialPlan(values, seed, purpose, 7)
    read = from_plain(TrialPlan, from_json(to_json(to_plain(plan))))
    assert read == plan
    assert repr(read) == repr(plan)


@given(reals, reals, st.booleans(), st.integers(), st.integers())
def test_distributions_are_told_apart(a: float, b: float, log: bool, i: int, j: int) -> None:
    low, high = sorted((a, b))
    if low == high or (log and low <= 0):
        return
    first, last = sorted((i, j))
    space: dict[str, Float | Int | Categorical] = {
        "a": Float(low, high, low, log),
        "b": Int(first, last),
        "c": Categorical((a, i, log, "x"), "x"),
    }
    assert repr(from_plain(_Space, from_json(to_json(to_plain(_Space(space)))))) == repr(_Space(space))


@pytest.mark.parametrize("record", [samples.advice(), samples.advice(recommended=False), samples.study()])
def test_whole_records_survive(record: Advice | Study) -> None:
    assert from_plain(type(record), from_json(to_json(to_plain(record)))) == record


def test_an_enumeration_is_kept_by_its_name_not_by_its_words() -> None:
    fit = ScalingFit(FitOutcome.NOT_HYPERBOLIC, 0.2)
    assert to_plain(fit)["outcome"] == "NOT_HYPERBOLIC"


def test_keys_of_a_newer_version_are_passed_over() -> None:
    plain = {**to_plain(samples.point(3)), "learning_rate": 0.1}
    assert from_plain(CurvePoint, plain) == samples.point(3)


def test_keys_of_an_older_version_take_their_defaults() -> None:
    plain = to_plain(samples.advice().throughput)
    del plain["notes"]
    assert from_plain(Throughput, plain).notes == ()


@pytest.mark.parametrize("plain", [{}, None, 3, {"step": "many"}])
def test_what_cannot_be_read_is_told(plain: object) -> None:
    with pytest.raises(StorageError, match=r"\(curve point\) that is damaged, or that another version"):
        from_plain(CurvePoint, plain)


@pytest.mark.parametrize("text", ["", "{", b"\xff", 5, 1.5, "[" * 100_000, '{"non_finite": "much"}'])
def test_text_that_is_no_json_is_told_where_its_record_is_wanted(text: Any) -> None:
    plain = {**to_plain(samples.study()), "target": from_json(text)}
    for unreadable in ([from_json(text)], [plain], [from_json(text), {}]):
        with pytest.raises(StorageError, match=r"\(study\) that is damaged"):
            from_plain(Study, *unreadable)


def test_an_object_that_looks_like_a_number_is_no_number() -> None:
    assert from_json(to_json({"non_finite": 1, "more": 2})) == {"non_finite": 1, "more": 2}
    assert math.isnan(from_json(to_json([math.nan]))[0])
