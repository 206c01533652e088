"""Memory of a larger batch size is foretold by a line, and never below what was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.memory_growth import (
    FURTHEST,
    LEAST_GROWTH,
    NEAR_LIMIT,
    is_near_limit,
    predicted_bytes,
)
from advisor.records.session import MemoryUse

SIZES = st.integers(1, 1 << 20)
BYTES = st.integers(0, 1 << 45)


@given(BYTES, st.integers(0, 1 << 24), st.integers(1, 1 << 16), st.integers(1, 16))
def test_a_line_is_continued(fixed: int, each: int, smaller: int, factor: int) -> None:
    known = [(size, fixed + each * size) for size in (smaller, 2 * smaller, 3 * smaller)]
    larger = 3 * factor * smaller
    found = predicted_bytes(known, larger)
    grew = known[-1][1] >= LEAST_GROWTH * known[-2][1]
    if grew and factor <= FURTHEST:
        assert found == pytest.approx(fixed + each * larger, rel=1e-9, abs=1)
    else:
        assert found is None


def test_noise_between_small_sizes_foretells_nothing() -> None:
    assert predicted_bytes([(1, 1_500_000_000), (2, 1_520_000_000)], 512) is None
    assert predicted_bytes([(1, 1_500_000_000), (2, 1_520_000_000)], 4) is None
    assert predicted_bytes([(1, 1_500_000_000), (2, 1_400_000_000)], 4) is None


@given(st.lists(SIZES, min_size=2, max_size=6, unique=True), st.data(), SIZES, SIZES)
def test_a_larger_batch_never_needs_less(
    sizes: list[int], data: st.DataObject, first: int, second: int
) -> None:
    known = [(size, data.draw(BYTES)) for size in sorted(sizes)]
    found = [predicted_bytes(known, size) for size in sorted((first, second))]
    foretold = [need for need in found if need is not None]
    assert foretold == sorted(foretold)
    assert all(need >= max(used for _, used in known[-2:]) for need in foretold)


def test_one_size_foretells_nothing() -> None:
    assert predicted_bytes([], 8) is None
    assert predicted_bytes([(4, 100)], 8) is None


@pytest.mark.parametrize(
    ("use", "near"),
    [
        (MemoryUse(1, 100, 91), True),
        (MemoryUse(1, 100, 120), True),
        (MemoryUse(99, 100, 90), False),
        (MemoryUse(99, 100, None), False),
        (MemoryUse(99, None, 99), False),
        (MemoryUse(), False),
    ],
)
def test_near_a_limit_is_known_only_where_both_are(use: MemoryUse, near: bool) -> None:
    assert NEAR_LIMIT == 0.9
    assert is_near_limit(use) is near
