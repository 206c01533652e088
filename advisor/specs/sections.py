"""Reads tables of unchecked values, and remembers every fault instead of stopping at the first."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Generic, TypeVar

from advisor.records.search_space import HyperparameterValue

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=StrEnum)

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Kind(Generic[Value]):
    """A kind of value: what is ``valid``, in words, and how to ``read`` it; None is not of this kind."""

    valid: str
    read: Callable[[object], Value | None]


def one_of(choices: type[Choice]) -> Kind[Choice]:
    """Return the kind whose values are those of an enumeration."""
    names = [choice.value for choice in choices]
    valid = "one of " + ", ".join(json.dumps(name) for name in names)
    return Kind(valid, lambda value: choices(value) if value in names else None)


@dataclass
class Section:
    """One table of a file: where it stands, what it holds, and the keys that it may hold (None: any).

    ``faults`` is shared by all tables of the file. ``homes`` says of the keys of other tables where they
    belong.
    """

    path: str
    values: Mapping[str, object]
    keys: Sequence[str] | None
    faults: list[str]
    homes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.values:
            if self.keys is not None and key not in self.keys:
                self.fault(key, f"unknown key; {self._hint(key, self.keys)}")

    def fault(self, key: str, sentence: str) -> None:
        """Remember what is wrong with ``key``, or of the whole table where ``key`` is empty."""
        self.faults.append(f"{self._place(key)}: {sentence}")

    def get(self, key: str, kind: Kind[Value]) -> Value | None:
        """Return the value of ``key``, or None where it is absent or not of its kind."""
        if key not in self.values:
            return None
        value = kind.read(self.values[key])
        if value is None:
            self.fault(key, f"got {shown(self.values[key])}; valid is {kind.valid}")
        return value

    def require(self, key: str, kind: Kind[Value]) -> Value | None:
        """As :meth:`get`, but absence is a fault."""
        if key not in self.values:
            self.fault(key, f"missing; valid is {kind.valid}")
        return self.get(key, kind)

    def table(self, key: str, keys: Sequence[str] | None, example: str) -> "Section | None":
        """Return the table at ``key``, or None where it is absent or no table."""
        table = self.get(key, Kind(f"a table such as {example}", _table))
        if table is None:
            return None
        homes = (
            {} if self.keys is None else self.homes
        )  # Below names that people choose, keys mean other things.
        return Section(self._place(key), table, keys, self.faults, homes)

    def _place(self, key: str) -> str:
        return ".".join(part for part in (self.path, key) if part)

    def _hint(self, key: str, keys: Sequence[str]) -> str:
        if key in self.homes:
            return f"it belongs {self.homes[key]}"
        close = get_close_matches(key.lower(), keys, n=1)
        return f"did you mean {close[0]}?" if close else f"valid are {', '.join(keys)}"


def shown(value: object) -> str:
    """Return ``value`` much as the file writes it, shortened."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _table(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _whole_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count(value: object) -> int | None:
    number = _whole_number(value)
    return number if number is not None and number >= 1 else None


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def _amount(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _scalar(value: object) -> HyperparameterValue | None:
    if isinstance(value, bool | str):
        return value
    return value if isinstance(value, int | float) and _number(value) is not None else None


WHOLE_NUMBER = Kind("a whole number", _whole_number)
COUNT = Kind("a whole number of at least 1", _count)
NUMBER = Kind("a finite number", _number)
AMOUNT = Kind("a number of at least 0", _amount)
TEXT = Kind("a text in quotes", _text)
SCALAR: Kind[HyperparameterValue] = Kind("a text, a finite number, true or false", _scalar)
