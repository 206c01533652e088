"""Quantities are written with three significant digits and a fitting unit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.quantities import count, duration, duration_between, memory, number, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"), (1234567, "1,234,567"), (0.0, "0"), (0.041897, "0.0419"), (0.5, "0.500"),
        (37.56, "37.6"),
        (999.7, "1,000"), (1234.5, "1,230"), (1e6, "1,000,000"), (1.37e-5, "1.37e-05"), (-2.5, "-2.50"),
        (math.nan, "unknown"), (math.inf, "unbounded"), (None, "unknown"),
    ],
)  # fmt: skip
def test_number(value: float | None, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(37.56, "38"), (3.14159, "3.14"), (1234.5, "1,230"), (64, "64"), (None, "unknown")],
)
def test_count(value: float | None, expected: str) -> None:
    assert count(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, "0 s"), (3.2e-7, "0.320 µs"), (4.2e-4, "420 µs"), (0.0162, "16.2 ms"), (0.99999, "1.00 s"),
        (41.5, "41.5 s"), (59.99, "1.00 min"), (312.4, "5.21 min"), (7200, "2.00 h"), (360000, "100 h"),
        (math.inf, "unbounded"), (math.nan, "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_duration(seconds: float | None, expected: str) -> None:
    assert duration(seconds) == expected


def test_bounds_share_the_unit_of_the_estimate() -> None:
    assert duration_between(0.0162, 0.0008, 1.2) == "16.2 ms (0.800–1,200)"
    assert duration_between(50, 40, math.inf) == "50.0 s (40.0–unbounded)"


def test_memory_and_percent() -> None:
    assert (memory(200 * 2**20), memory(3 * 2**30), memory(None)) == ("200 MiB", "3.00 GiB", "unknown")
    assert (percent(0.954), percent(0), percent(None), percent(math.inf)) == (
        "95 %",
        "0 %",
        "unknown",
        "unknown",
    )


UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@given(st.floats(1e-6, 1e7))
def test_a_duration_reads_back_to_half_a_per_cent(seconds: float) -> None:
    value, unit = duration(seconds).replace(",", "").split()
    assert float(value) * UNITS[unit] == pytest.approx(seconds, rel=0.0051)
    assert float(value) >= 1
