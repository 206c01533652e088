"""Options of a training that a measurement can be compared under."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.errors import SpecError
from advisor.records.requests import SessionOptions

_SWITCHES = ("xla", "mixed_precision")
_STEPS = re.compile(r"steps_per_call=0*(?P<steps>[1-9][0-9]{0,8})", re.ASCII)


def parse_variants(texts: str | Sequence[str], options: SessionOptions) -> Mapping[str, SessionOptions]:
    """Return what :func:`parse_variant` makes of each text, or of a single one; the same one counts once."""
    return dict(parse_variant(text, options) for text in ((texts,) if isinstance(texts, str) else texts))


def parse_variant(text: str, options: SessionOptions) -> tuple[str, SessionOptions]:
    """Return ``options`` with the one changed that ``text`` names, and what to call them.

    A switch, such as ``xla``, is turned on, or off where it is on: ``without xla``. ``steps_per_call=1``
    sets a number. Raises :class:`~advisor.errors.SpecError` for others.
    """
    if text in _SWITCHES:
        is_on = getattr(options, text)
        return f"without {text}" if is_on else text, replace(options, **{text: not is_on})
    match = _STEPS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise SpecError(
            f"{text!r} is nothing to compare with; valid are {', '.join(_SWITCHES)} and steps_per_call=N, "
            "N from 1 to 999999999."
        )
    steps = int(match["steps"])
    return f"steps_per_call={steps}", replace(options, steps_per_call=steps)
