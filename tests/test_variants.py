"""Names of options to compare with."""

import pytest

from advisor.errors import SpecError
from advisor.records.requests import SessionOptions
from advisor.specs.variants import parse_variant


def test_each_name_changes_its_option_alone() -> None:
    plain = SessionOptions()
    assert parse_variant("xla", plain) == SessionOptions(xla=True)
    assert parse_variant("mixed_precision", plain) == SessionOptions(mixed_precision=True)
    assert parse_variant("steps_per_call=1", plain) == SessionOptions(steps_per_call=1)
    assert parse_variant("xla", SessionOptions(xla=True, steps_per_call=2)) == SessionOptions(
        steps_per_call=2
    )


@pytest.mark.parametrize(
    "text", ["", "XLA", "xla=1", "steps_per_call", "steps_per_call=0", "steps_per_call=-1"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="nothing to compare with; valid are xla, mixed_precision"):
        parse_variant(text, SessionOptions())
