"""Quantities as people read them: three significant digits, thousands apart, units that fit the size."""

import math

_UNITS_OF_TIME = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))


def number(value: float | None) -> str:
    """Return ``value`` with three significant digits; whole numbers in full."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "unbounded"
    if isinstance(value, int):
        return f"{value:,}"
    rounded = float(f"{value:.3g}")
    if rounded != 0 and abs(rounded) < 1e-3:
        return f"{rounded:.3g}"
    digits = 2 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(digits, 0)}f}"


def count(value: float | None) -> str:
    """Return a number of things: whole from ten on, where a fraction of one says nothing."""
    if value is None or not math.isfinite(value) or value < 10:
        return number(value)
    return f"{round(value):,}" if value < 1000 else number(value)


def duration(seconds: float | None) -> str:
    """Return a time in µs, ms, s, min or h."""
    if seconds is None or not math.isfinite(seconds):
        return number(seconds)
    size, unit = _unit_of_time(seconds)
    return f"{number(float(seconds / size))} {unit}"


def duration_between(seconds: float, low: float, high: float) -> str:
    """Return a time with its bounds in one unit, such as ``16.2 ms (14.1–18.6)``."""
    size, _ = _unit_of_time(seconds)
    return f"{duration(seconds)} ({number(float(low / size))}–{number(float(high / size))})"


def _unit_of_time(seconds: float) -> tuple[float, str]:
    """Return the largest unit that ``seconds``, rounded, is at least one of; seconds for nothing at all."""
    rounded = float(f"{seconds:.3g}")
    fitting = [unit for unit in _UNITS_OF_TIME if rounded >= unit[0]]
    return (1.0, "s") if seconds == 0 else fitting[-1] if fitting else _UNITS_OF_TIME[0]


def memory(size_bytes: float | None) -> str:
    """Return a size in MiB or GiB."""
    if size_bytes is None:
        return "unknown"
    mebibytes = size_bytes / 2**20
    return f"{number(mebibytes)} MiB" if mebibytes < 1024 else f"{number(mebibytes / 1024)} GiB"


def percent(share: float | None) -> str:
    """Return a share in whole per cent."""
    return "unknown" if share is None or not math.isfinite(share) else f"{share * 100:.0f} %"
