"""What ``advisor.measure`` is asked for is checked before anything is loaded or started."""

from collections.abc import Sequence
from typing import Any

import pytest

import advisor
from advisor.errors import SpecError
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
        ({"timeout_s": 0}, "Got a timeout of 0; valid are seconds above 0, up to 1,000,000"),
        ({"timeout_s": -2.5}, "Got a timeout of -2.5"),
        ({"timeout_s": float("nan")}, "Got a timeout of nan"),
        ({"timeout_s": float("inf")}, "Got a timeout of inf"),
        ({"timeout_s": "5"}, "Got a timeout of '5'"),
        ({"compare": ["speed"]}, "'speed' is nothing to compare with"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    asked: dict[str, Any], words: str, factories: list[dict[str, Any]]
) -> None:
    with pytest.raises(SpecError, match=words):
        advisor.measure(**asked)
    assert factories == []
