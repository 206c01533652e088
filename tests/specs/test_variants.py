"""Names of options to compare with."""

import pytest

from advisor.errors import SpecError
from advisor.records.requests import SessionOptions
from advisor.specs.variants import parse_variant, parse_variants

PLAIN = SessionOptions()


@pytest.mark.parametrize(
    ("text", "options", "name", "changed"),
    [
        ("xla", PLAIN, "xla", SessionOptions(xla=True)),
        ("mixed_precision", PLAIN, "mixed_precision", SessionOptions(mixed_precision=True)),
        ("steps_per_call=1", PLAIN, "steps_per_call=1", SessionOptions(steps_per_call=1)),
        ("steps_per_call=02", SessionOptions(xla=True), "steps_per_call=2", SessionOptions(True, False, 2)),
        (
            "xla",
            SessionOptions(xla=True, steps_per_call=2),
            "without xla",
            SessionOptions(steps_per_call=2),
        ),
        ("mixed_precision", SessionOptions(mixed_precision=True), "without mixed_precision", PLAIN),
    ],
)
def test_each_changes_its_option_alone_and_is_called_what_it_is(
    text: str, options: SessionOptions, name: str, changed: SessionOptions
) -> None:
    assert parse_variant(text, options) == (name, changed)


@pytest.mark.parametrize(
    "text",
    ["", "XLA", "xla=1", "steps_per_call", "steps_per_call=0", "steps_per_call=-1", "steps_per_call=١", 3],
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="nothing to compare with; valid are xla, mixed_precision"):
        parse_variant(text, PLAIN)


def test_a_number_too_long_to_read_is_refused() -> None:
    with pytest.raises(SpecError, match="nothing to compare with"):
        parse_variant("steps_per_call=" + "9" * 5000, PLAIN)


def test_the_same_one_counts_once_and_a_text_is_one() -> None:
    names = ("steps_per_call=1", "xla", "steps_per_call=01", "xla")
    assert list(parse_variants(names, PLAIN)) == ["steps_per_call=1", "xla"]
    assert parse_variants("xla", PLAIN) == {"xla": SessionOptions(xla=True)}
    assert parse_variants((), PLAIN) == {}
