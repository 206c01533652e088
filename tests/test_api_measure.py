"""What ``advisor.measure`` is asked for is checked before anything is loaded or started."""

from collections.abc import Sequence
from typing import Any

import pytest

import advisor
from advisor import wiring
from advisor.errors import SpecError, WorkloadError
from advisor.execution import local, memory

GIB = 2**30


class OpenedError(Exception):
    """Ends a measurement where it would begin."""


@pytest.fixture
def factories(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[dict[str, Any]]:
    """Return what sessions are made with; measuring itself is not begun."""
    made: list[dict[str, Any]] = []

    class Noted:
        def __init__(self, entry: str, reference: Any, **limits: Any) -> None:
            made.append({"options": reference.options, **limits})

        def open(self) -> None:
            raise OpenedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "LocalSessions", Noted)
    monkeypatch.setattr(memory, "default_memory_limit_bytes", lambda: 12 * GIB)
    return made


def ask(factories: Sequence[dict[str, Any]], **asked: Any) -> Sequence[dict[str, Any]]:
    with pytest.raises(OpenedError):
        advisor.measure(**asked)
    return factories


def test_sessions_side_by_side_share_the_memory(factories: list[dict[str, Any]]) -> None:
    made = ask(factories, compare=["xla", "mixed_precision"], memory_limit="8GiB", xla=True)
    assert [one["memory_share_bytes"] for one in made] == [4 * GIB] * 3
    assert [one["memory_limit_bytes"] for one in made] == [8 * GIB] * 3
    assert [one["options"].xla for one in made] == [True, False, True]


def test_a_session_alone_may_take_what_is_available(factories: list[dict[str, Any]]) -> None:
    (made,) = ask(factories, timeout_s=5)
    assert made["timeout_advice"] == "allow more with --timeout"
    assert (made["memory_limit_bytes"], made["memory_share_bytes"], made["call_timeout_s"]) == (None, None, 5)


def test_one_name_is_no_list_of_letters(factories: list[dict[str, Any]]) -> None:
    made = ask(factories, compare="xla")
    assert [one["options"].xla for one in made] == [False, True]
    assert all("call_timeout_s" not in one for one in made)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"memory_limit": 0}, "Got 0 as a size of memory"),
        ({"memory_limit": -1}, "Got -1 as a size of memory"),
        ({"memory_limit": True}, "Got true as a size of memory"),
        ({"memory_limit": 1.5}, "Got 1.5 as a size of memory"),
        ({"timeout_s": 0}, "Got timeout_s=0; valid is a finite number above 0 up to 1,000,000"),
        ({"timeout_s": -2.5}, "Got timeout_s=-2.5"),
        ({"timeout_s": float("nan")}, "Got timeout_s=nan"),
        ({"timeout_s": float("inf")}, "Got timeout_s=inf"),
        ({"timeout_s": "5"}, "Got timeout_s='5'"),
        ({"seconds": float("nan")}, "Got seconds=nan; valid is a finite number of at least 0.01"),
        ({"precision": "fine"}, "Got precision='fine'"),
        ({"batch_sizes": {"minimum": 0}}, "Got minimum=0; valid is a whole number of at least 1"),
        ({"compare": ["speed"]}, "'speed' is nothing to compare with"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    asked: dict[str, Any], words: str, factories: list[dict[str, Any]]
) -> None:
    with pytest.raises(SpecError, match=words):
        advisor.measure(**asked)
    assert factories == []


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_taken_for_none(name: str, factories: list[dict[str, Any]]) -> None:
    with pytest.raises(WorkloadError, match=r"Got '\s*' as the name of a workload\. Name one as file\.py"):
        advisor.measure(name)


def test_recommend_and_tune_check_their_numbers(factories: list[dict[str, Any]]) -> None:
    with pytest.raises(SpecError, match="Got overhead=nan"):
        wiring.recommend(overhead=float("nan"))
    with pytest.raises(SpecError, match="Got power_w=-1"):
        wiring.plan(prices={"power_w": -1})
    with pytest.raises(SpecError, match="Got batch_size='many'"):
        wiring.tune(batch_size="many")  # type: ignore[arg-type]
