"""Options of a training that a measurement can be compared under."""

from dataclasses import replace

from advisor.errors import SpecError
from advisor.records.requests import SessionOptions

_STEPS = "steps_per_call"


def parse_variant(text: str, options: SessionOptions) -> SessionOptions:
    """Return ``options`` with the one changed that ``text`` names, such as ``xla`` or ``steps_per_call=1``.

    A switch that is on already is switched off. Raises :class:`~advisor.errors.SpecError` for others.
    """
    name, _, number = text.partition("=")
    if text == "xla":
        return replace(options, xla=not options.xla)
    if text == "mixed_precision":
        return replace(options, mixed_precision=not options.mixed_precision)
    if name == _STEPS and number.isdecimal() and int(number) > 0:
        return replace(options, steps_per_call=int(number))
    raise SpecError(
        f"{text!r} is nothing to compare with; valid are xla, mixed_precision and {_STEPS}=N, N from 1 on."
    )
