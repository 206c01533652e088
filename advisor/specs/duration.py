"""Durations as people write them."""

import re
from decimal import Decimal

from advisor.errors import SpecError
from advisor.specs.sections import shown

_UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"\s*(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>[a-z]+)\s*", re.ASCII | re.IGNORECASE)
_LONGEST_S = 10**11  # Some thousand years: who writes more has mistyped.


def parse_duration(text: str) -> float:
    """Return ``text``, a number with its unit such as ``90s``, ``30 min``, ``1.5h`` or ``2d``, in seconds.

    Small and large letters are the same. Raises :class:`~advisor.errors.SpecError` for anything else, for
    nothing at all, and for more than a life can wait.
    """
    match = _DURATION.fullmatch(text)
    unit_s = _UNITS_S.get(match["unit"].lower(), 0) if match else 0
    seconds = float(Decimal(match["number"]) * unit_s) if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise SpecError(
            f"Got {shown(text)} as a duration; valid is a number above 0 with its unit, s, min, h or d, as "
            "in 90s, 30min, 1.5h or 2d."
        )
    return seconds
