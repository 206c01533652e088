"""Sizes of memory are read exactly, or refused in a sentence."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import SpecError
from advisor.specs.byte_size import parse_bytes

BYTES = {
    **{"": 1, "B": 1},
    **{"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12},
    **{"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    **{"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40},
}
units = st.sampled_from(list(BYTES))
spaces = st.sampled_from(["", " ", "  ", "\t"])
cases = st.sampled_from([str.lower, str.upper, str])


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2_000_000_000),
        ("2 GiB", 2_147_483_648),
        ("512MiB", 536_870_912),
        ("1.5g", 1_610_612_736),
        ("2000000000", 2_000_000_000),
        (" 64 kB ", 64_000),
        (".5T", 549_755_813_888),
        ("0.1KiB", 102),
        ("9007199254740993.0", 2**53 + 1),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "GB", "nan", "inf", "infinity GB"),
        *("0", "0.0 GB", "0.9", "0.0001KiB", "-1GB", "+1GB"),
        *("1e9", "0x10", "1,5g", "1_000", "1.2.3", "1.", "½GB", "٣GB"),
        *("2 XB", "2PB", "2Gb/s", "2 GB GB", "2G iB", "2\u212aB"),
        *("8388608T", "9223372036854775808", "9" * 5000 + "GB"),
    ],
)
def test_what_is_no_size_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SpecError, match=r"^Got \".* as a size of memory; valid is .*\.$") as seen:
        parse_bytes(text)
    assert len(str(seen.value)) < 400


def test_a_number_is_bytes() -> None:
    assert parse_bytes(2**30) == parse_bytes(np.int64(2**30)) == 2**30


@pytest.mark.parametrize("number", [0, -1, True, 1.5, 2**63, float("nan")])
def test_other_numbers_are_refused(number: int) -> None:
    with pytest.raises(SpecError, match=r"^Got .* as a size of memory; valid is a whole number of bytes"):
        parse_bytes(number)


def test_the_sentence_shows_what_was_received_and_every_unit() -> None:
    with pytest.raises(SpecError) as seen:
        parse_bytes("2 XB")
    assert str(seen.value).startswith('Got "2 XB" as')
    assert all(unit in str(seen.value) for unit in BYTES)


@given(st.integers(1, 10**6), units, spaces, cases)
def test_whole_numbers_are_multiples_of_their_unit(
    number: int, unit: str, space: str, case: type[str]
) -> None:
    assert parse_bytes(f"{space}{number}{space}{case(unit)}{space}") == number * BYTES[unit]


@given(st.decimals(1, 1000, places=3), units)
def test_fractions_of_a_byte_are_left_off(number: Decimal, unit: str) -> None:
    assert parse_bytes(f"{number:f}{unit}") == int(number * 1000) * BYTES[unit] // 1000


@given(st.integers(1, 2**63 - 1))
def test_bytes_come_back_as_they_were_written(size: int) -> None:
    assert parse_bytes(str(size)) == parse_bytes(f"{size}B") == size


@given(st.text(max_size=12) | st.from_regex(r"-?[0-9]{0,4}[.,e]?[0-9]{0,3} ?[KMGTkgib]{0,3}", fullmatch=True))
def test_whatever_is_written_is_read_as_at_least_a_byte_or_refused_in_words(text: str) -> None:
    try:
        assert parse_bytes(text) >= 1
    except SpecError as error:
        assert str(error).startswith("Got ")
