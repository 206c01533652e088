"""Records as plain JSON values and back.

Reading is lenient towards other versions of the program: keys that are not known are passed over, and
keys that are missing take the default of their field.
"""

import json
import math
import re
from enum import StrEnum
from typing import Any, TypeVar

from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from advisor.errors import StorageError
from advisor.records.search_space import Distribution

Record = TypeVar("Record")

_NON_FINITE = "non_finite"
_UNREADABLE = object()
"""Stands for text that is no JSON until somebody wants the record that it is part of."""

_converter = make_converter()
# A distribution is told by its class, since a Float and an Int have the same fields.
configure_tagged_union(Distribution, _converter, tag_name="kind")
# An enumeration is kept by its member's name, since its value may be a sentence that is worded anew.
_converter.register_unstructure_hook(StrEnum, lambda member: member.name)
_converter.register_structure_hook(StrEnum, lambda name, kind: kind[name])
_converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)


class UnreadableError(StorageError):
    """A record cannot be read; the message is the end of a sentence that begins with the database."""

    def __init__(self, record: str) -> None:
        super().__init__(
            f"holds a record ({record}) that is damaged, or that another version of the program wrote. "
            "Restore the database from a copy, upgrade with pip install --upgrade batch-advisor, or name "
            "another with --storage."
        )


def to_plain(record: object) -> Any:
    """Return ``record`` as dictionaries, lists and scalars."""
    return _converter.unstructure(record)


def from_plain(kind: type[Record], *parts: Any) -> Record:
    """Return the record of ``kind`` that :func:`to_plain` took apart.

    Where it was kept in several ``parts``, later ones come before earlier ones. Raises
    :class:`UnreadableError` where they do not make up such a record.
    """
    try:
        plain = parts[0] if len(parts) == 1 else {key: part[key] for part in parts for key in part}
        return _converter.structure(plain, kind)
    # Damage may make any value of any type, and what is built of it says so in many ways.
    except Exception as error:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
        raise UnreadableError(words) from error


def to_json(plain: object) -> str:
    """Return ``plain`` as JSON text; NaN and infinities, which JSON has no number for, become objects."""
    return json.dumps(_finite(plain), allow_nan=False)


def from_json(text: str | bytes) -> Any:
    """Return what :func:`to_json` wrote; from anything else, what no record can be made of."""
    try:
        return _decoder.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, TypeError, AttributeError, RecursionError):
        return _UNREADABLE


def _finite(plain: object) -> object:
    if isinstance(plain, float) and not math.isfinite(plain):
        return {_NON_FINITE: str(plain)}
    if isinstance(plain, dict):
        return {key: _finite(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_finite(value) for value in plain]
    return plain


def _read_non_finite(read: dict[str, Any]) -> Any:
    return float(read[_NON_FINITE]) if read.keys() == {_NON_FINITE} else read


_decoder = json.JSONDecoder(object_hook=_read_non_finite)
