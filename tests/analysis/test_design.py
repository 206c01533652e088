import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.design import from_the_middle, next_batch_size, step_limit

POWERS = [2**power for power in range(11)]


def explore(candidates: list[int], steps_at, most: int = 7) -> dict[int, float | None]:
    steps: dict[int, float | None] = {}
    middle = candidates[len(candidates) // 2]
    while (batch_size := next_batch_size(steps, candidates, middle, most)) is not None:
        assert batch_size in candidates and batch_size not in steps
        steps[batch_size] = steps_at(batch_size)
    return steps


def hyperbola(critical: float, least: float = 20.0):
    return lambda batch_size: least * (1 + critical / batch_size)


@given(critical=st.floats(16, 200), most=st.integers(5, 11))
def test_both_regimes_are_seen(critical: float, most: int) -> None:
    steps = explore(POWERS, hyperbola(critical), most)
    assert len(steps) <= most
    assert min(steps) <= critical / 2 and max(steps) >= critical


def test_it_starts_in_the_middle_and_goes_out_by_fours() -> None:
    assert list(explore(POWERS, hyperbola(60.0)))[:4] == [32, 128, 8, 512]


def test_it_stops_upwards_where_steps_no_longer_fall() -> None:
    steps = explore([2**power for power in range(16)], lambda batch_size: 100.0, most=16)
    assert max(steps) == 1024


def test_it_does_not_go_down_where_examples_no_longer_fall() -> None:
    steps = explore(POWERS, lambda batch_size: 1e5 / batch_size, most=11)
    assert min(steps) == 32


def test_it_goes_down_first_where_nothing_was_reached() -> None:
    assert next_batch_size({32: None}, POWERS, 32, 7) == 8


def test_a_single_candidate_is_looked_at_once() -> None:
    assert list(explore([64], hyperbola(10.0))) == [64]


@given(candidates=st.sets(st.integers(1, 5000), min_size=1, max_size=9))
def test_every_listed_batch_size_gets_its_turn(candidates: set[int]) -> None:
    looked_at: list[int] = []
    while (batch_size := from_the_middle(sorted(candidates), looked_at)) is not None:
        looked_at.append(batch_size)
    assert sorted(looked_at) == sorted(candidates)


@given(
    critical=st.floats(1, 1000),
    known=st.sampled_from(POWERS),
    batch_size=st.sampled_from(POWERS),
)
def test_the_limit_leaves_room_for_what_theory_allows(critical: float, known: int, batch_size: int) -> None:
    steps = hyperbola(critical)
    assert step_limit({known: steps(known)}, batch_size, 10**9) >= 3 * steps(batch_size)


def test_the_limit_of_examples_holds_always() -> None:
    assert step_limit({}, 64, 6400) == 100
    assert step_limit({32: 1e6}, 64, 6400) == 100
    assert step_limit({32: None}, 64, 6400) == 100
    assert step_limit({}, 6400, 64) == pytest.approx(1)
