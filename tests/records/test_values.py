"""What a user writes is checked where it is written, and becomes plain values that can be stored."""

import math
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from advisor import Categorical, Float, Int, Target, Workload
from advisor.errors import WorkloadError


class Kind(StrEnum):
    PLAIN = "plain"


def workload(**changes: Any) -> Workload:
    return Workload(**{"name": "line", "build_model": lambda hp: None, "data": dict, **changes})


def test_numbers_of_numpy_become_plain() -> None:
    searched = Float(np.float32(0.25), np.float64(0.5), default=np.float32(0.25))
    assert [type(value) for value in (searched.low, searched.high, searched.default)] == [float] * 3
    whole = Int(np.int64(1), np.int32(8))
    assert (whole.low, whole.high, type(whole.high)) == (1, 8, int)
    assert type(Target("loss", at_most=np.float32(0.5)).value) is float
    assert Categorical([np.int64(3), np.float32(0.5), "a", True]).choices == (3, 0.5, "a", True)


@pytest.mark.parametrize("bound", [math.nan, math.inf, "1", None, True])
def test_a_bound_that_is_no_finite_number_is_refused(bound: Any) -> None:
    with pytest.raises(WorkloadError, match="finite number"):
        Float(0.0, bound)
    with pytest.raises(WorkloadError, match="finite number"):
        Int(0, bound)


@pytest.mark.parametrize("bound", [math.nan, math.inf, "0.3", True])
def test_a_target_that_is_no_finite_number_is_refused(bound: Any) -> None:
    with pytest.raises(WorkloadError, match="finite number"):
        Target("loss", at_most=bound)


def test_half_a_unit_is_refused() -> None:
    with pytest.raises(WorkloadError, match="whole number"):
        Int(0, 2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("choice", [Kind.PLAIN, (1, 2), print, None], ids=str)
def test_a_choice_that_cannot_be_stored_is_refused(choice: Any) -> None:
    with pytest.raises(WorkloadError, match="Name each by a text"):
        Categorical(["a", choice])


@pytest.mark.parametrize("name", [5, None, "", "a/b", "..", "x" * 81, Kind.PLAIN], ids=str)
def test_a_name_that_is_no_file_name_is_refused(name: Any) -> None:
    with pytest.raises(WorkloadError, match="cannot be named"):
        workload(name=name)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (None, "give a dictionary"),
        ([("width", Int(1, 2))], "give a dictionary"),
        ({5: Int(1, 2)}, "named by a text"),
        ({"width": (1, 2)}, "a Float, an Int or a Categorical"),
        ({"batch_size": Int(1, 2)}, "never tuned for validation performance"),
    ],
    ids=str,
)
def test_a_search_space_of_another_form_is_refused(space: Any, words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        workload(search_space=space)
