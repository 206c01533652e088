"""Sizes of memory as people write them."""

import re
from decimal import Decimal
from fractions import Fraction
from operator import index
from typing import SupportsIndex

from advisor.errors import SpecError
from advisor.specs.sections import shown

_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_UNITS = (
    {"": 1, "b": 1}
    | {f"{letter}b": 1000**power for letter, power in _POWERS.items()}
    | {letter + rest: 1024**power for letter, power in _POWERS.items() for rest in ("", "ib")}
)
_SIZE = re.compile(r"\s*(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>[a-z]*)\s*", re.ASCII | re.IGNORECASE)
_TOO_LARGE = 2**63  # Operating systems count in signed numbers of 64 bits.


def parse_bytes(size: str | int) -> int:
    """Return ``size``, a whole number of bytes or text, in bytes; fractions of a byte are left off.

    In text, small and large letters are the same. ``KB`` to ``TB`` are powers of 1000. ``KiB`` to ``TiB``
    are powers of 1024, and so are ``K`` to ``T``, which is how container tools read them. Raises
    :class:`~advisor.errors.SpecError` for anything else, and for less than one byte.
    """
    number = _of_text(size) if isinstance(size, str) else _of_number(size)
    if not 1 <= number < _TOO_LARGE:
        raise SpecError(
            f"Got {shown(size)} as a size of memory; valid is a whole number of bytes above 0 (and below "
            "8 EiB), or text: a number alone or with B, with KB, MB, GB, TB (powers of 1000), or with KiB, "
            "MiB, GiB, TiB, K, M, G, T (powers of 1024), as in 2GB or 1.5g."
        )
    return number


def _of_text(text: str) -> int:
    match = _SIZE.fullmatch(text)
    factor = _UNITS.get(match["unit"].lower()) if match else None
    return int(Fraction(Decimal(match["number"])) * factor) if match and factor else 0


def _of_number(number: object) -> int:
    """Return ``number`` where it is a whole one of any kind, else 0; a truth value is none."""
    return index(number) if isinstance(number, SupportsIndex) and not isinstance(number, bool) else 0
