"""Durations are read with their unit, or refused in a sentence."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import SpecError
from advisor.specs.duration import parse_duration

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30 min", 1800), ("1.5h", 5400), ("2D", 172_800), (" .5 H ", 1800), ("0.1s", 0.1)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "h", "2", "2.", "two hours", "nan h", "inf s", "1e3s", "1_000s", "½h", "٣h"),
        *("0s", "0.0d", "-1h", "+1h", "2m", "2 hours", "1h30min", "2hh", "9" * 400 + "d", "99999999999d"),
    ],
)
def test_what_is_no_duration_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SpecError, match=r'^Got ".* as a duration; valid is a number above 0 .* s, min, h or'):
        parse_duration(text)


@given(st.decimals("0.001", 9999, places=3), st.sampled_from(list(SECONDS)), st.sampled_from(["", " "]))
def test_a_unit_is_so_many_seconds(number: object, unit: str, space: str) -> None:
    seconds = parse_duration(f"{number:f}{space}{unit}")
    assert seconds == pytest.approx(float(Fraction(str(number)) * SECONDS[unit]))


@given(st.text(max_size=10) | st.from_regex(r"-?[0-9]{0,3}[.,e]?[0-9]{0,3} ?[smhd]{0,3}", fullmatch=True))
def test_whatever_is_written_is_more_than_nothing_or_refused_in_words(text: str) -> None:
    try:
        assert parse_duration(text) > 0
    except SpecError as error:
        assert str(error).startswith("Got ")
