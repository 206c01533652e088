"""Quasi-random points stay inside their ranges, fill them evenly, and can be had one at a time."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import qmc

from advisor.analysis.quasi_random import number_of_points, quasi_random_point, usual_value, window
from advisor.records.search_space import (
    Categorical,
    Distribution,
    Float,
    HyperparameterValue,
    Int,
    Scale,
    SearchSpace,
)

POSITIVE = st.floats(1e-12, 1e12)
SEEDS = st.integers(0, 2**32 - 1)


def _floats(ends: st.SearchStrategy[float], **scale: bool) -> st.SearchStrategy[Float]:
    pairs = st.lists(ends, min_size=2, max_size=2, unique=True).map(sorted)
    return pairs.map(lambda pair: Float(*pair, **scale))


def _ints(lowest: int, log: bool) -> st.SearchStrategy[Int]:
    pairs = st.lists(st.integers(lowest, 10**15), min_size=2, max_size=2).map(sorted)
    return pairs.map(lambda pair: Int(*pair, log=log))


DISTRIBUTIONS = st.one_of(
    _floats(st.floats(-1e12, 1e12)),
    _floats(POSITIVE, log=True),
    _floats(st.floats(-1e3, 1 - 1e-9), log_one_minus=True),
    _ints(-(10**15), log=False),
    _ints(1, log=True),
    st.lists(st.sampled_from([0.5, 3, "relu", True, "tanh"]), min_size=1).map(Categorical),
)
SPACES = st.dictionaries(st.text("abcdefgh", min_size=1), DISTRIBUTIONS, max_size=6)


def inside(distribution: Distribution, value: HyperparameterValue) -> bool:
    if isinstance(distribution, Categorical):
        return any(value is choice for choice in distribution.choices)
    kind = int if isinstance(distribution, Int) else float
    return type(value) is kind and distribution.low <= value <= distribution.high


def shares(distribution: Float, values: list[float]) -> list[float]:
    """Return where on its axis each value lies, from 0 to 1."""
    on_axis = {
        Scale.LINEAR: lambda value: value,
        Scale.LOG: math.log,
        Scale.LOG_ONE_MINUS: lambda value: math.log(1 - value),
    }[distribution.scale]
    low, high = on_axis(distribution.low), on_axis(distribution.high)
    return [(on_axis(value) - low) / (high - low) for value in values]


def axis(distribution: Distribution, points: int, seed: int) -> list[HyperparameterValue]:
    """Return the first points of one axis, beside two others."""
    space = {"a": Float(0.0, 1.0), "x": distribution, "z": Int(0, 9)}
    return [quasi_random_point(space, index, seed)["x"] for index in range(points)]


@given(SPACES, st.integers(0, 5000), SEEDS)
def test_every_point_lies_inside_its_range(space: SearchSpace, index: int, seed: int) -> None:
    point = quasi_random_point(space, index, seed)
    assert list(point) == list(space)
    assert all(inside(space[name], value) for name, value in point.items())


@pytest.mark.parametrize(
    "distribution",
    [
        Float(0.1, 0.9, log_one_minus=True),  # 1 - (1 - 0.1) is below 0.1
        Float(0.5, 0.999, log_one_minus=True),
        Float(0.1, 0.3),
        Float(0, 1),
        Float(1e-5, 0.7, log=True),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2**-30])
def test_the_ends_of_a_range_are_not_passed(
    monkeypatch: pytest.MonkeyPatch, distribution: Float, share: float
) -> None:
    monkeypatch.setattr(qmc.Sobol, "random", lambda self, number: np.full((number, 1), share))
    assert inside(distribution, quasi_random_point({"x": distribution}, 0, 0)["x"])


@given(st.integers(1, 5), st.integers(0, 7), SEEDS)
def test_points_are_those_of_the_sequence_whichever_is_asked_for(axes: int, power: int, seed: int) -> None:
    space = {str(number): Float(0.0, 1.0) for number in range(axes)}
    whole = qmc.Sobol(axes, scramble=True, rng=seed).random(2**power)
    backwards = [quasi_random_point(space, index, seed) for index in reversed(range(2**power))]
    assert np.array_equal([list(point.values()) for point in reversed(backwards)], whole)


def test_the_seed_decides_the_points() -> None:
    space = {"x": Float(0.0, 1.0)}
    firsts = [quasi_random_point(space, 0, seed)["x"] for seed in (0, 0, 1, 2)]
    assert firsts[0] == firsts[1] and len(set(firsts)) == 3


def test_an_empty_space_has_one_point() -> None:
    assert quasi_random_point({}, 3, 0) == {}
    assert number_of_points({}) == 1


@given(
    st.one_of(
        _floats(st.floats(-100, 100).map(lambda end: round(end, 2))),
        st.just(Float(1e-5, 10.0, log=True)),
        st.just(Float(0.0, 0.999, log_one_minus=True)),
    ),
    st.integers(3, 7),
    st.integers(2, 9),
    SEEDS,
)
def test_every_stratum_of_an_axis_gets_its_share(range_: Float, power: int, strata: int, seed: int) -> None:
    values = [float(value) for value in axis(range_, 2**power, seed)]
    counts = Counter(min(int(share * strata), strata - 1) for share in shares(range_, values))
    expected = 2**power / strata
    assert all(abs(counts[stratum] - expected) < 2 for stratum in range(strata))


@given(st.integers(3, 7), SEEDS)
def test_halves_of_halves_are_filled_exactly(power: int, seed: int) -> None:
    values = [float(value) for value in axis(Float(0.0, 1.0), 2**power, seed)]
    for strata in (2**size for size in range(power + 1)):
        counts = Counter(int(value * strata) for value in values)
        assert [counts[stratum] for stratum in range(strata)] == [2**power // strata] * strata


@given(st.integers(-20, 20), st.integers(1, 9), st.integers(4, 7), SEEDS)
def test_every_whole_number_gets_its_share(low: int, number: int, power: int, seed: int) -> None:
    counts = Counter(axis(Int(low, low + number - 1), 2**power, seed))
    assert counts.keys() <= set(range(low, low + number))
    assert all(abs(counts[value] - 2**power / number) < 2 for value in range(low, low + number))


@given(st.integers(1, 9), st.integers(4, 7), SEEDS)
def test_every_choice_gets_its_share(number: int, power: int, seed: int) -> None:
    choices = tuple(f"choice {index}" for index in range(number))
    counts = Counter(axis(Categorical(choices), 2**power, seed))
    assert all(abs(counts[choice] - 2**power / number) < 2 for choice in choices)


def test_whole_numbers_on_a_logarithmic_axis_get_the_width_of_their_unit() -> None:
    counts = Counter(axis(Int(1, 8, log=True), 1024, 0))
    for value in range(1, 9):
        share = math.log((value + 1) / value) / math.log(9)
        assert abs(counts[value] - 1024 * share) < 2


@given(SPACES)
def test_points_are_counted(space: SearchSpace) -> None:
    if any(isinstance(distribution, Float) for distribution in space.values()):
        assert number_of_points(space) == math.inf
    else:
        assert number_of_points(space) == math.prod(
            len(set(distribution.choices))
            if isinstance(distribution, Categorical)
            else distribution.high - distribution.low + 1
            for distribution in space.values()
        )


def test_all_points_of_a_small_space_come_up() -> None:
    space = {"depth": Int(-1, 2), "activation": Categorical(("relu", "tanh", "gelu"))}
    seen = {tuple(quasi_random_point(space, index, 0).values()) for index in range(64)}
    assert len(seen) == number_of_points(space) == 12


RATES = st.floats(1e-7, 1e3)


@given(_floats(st.floats(1e-6, 100.0), log=True), RATES, RATES, st.floats(0.1, 3.0))
def test_a_window_is_what_lies_within_decades_of_its_centre(
    range_: Float, centre: float, rate: float, decades: float
) -> None:
    space: SearchSpace = {"learning_rate": range_, "momentum": Float(0.5, 0.9)}
    narrowed = window(space, {"learning_rate": centre}, decades)
    assert narrowed["momentum"] == space["momentum"] and list(narrowed) == list(space)
    held = narrowed["learning_rate"]
    assert isinstance(held, Float) and held.scale is Scale.LOG
    assert range_.low <= held.low < held.high <= range_.high
    if range_.high > centre / 10**decades and range_.low < centre * 10**decades:
        near = centre / 10**decades <= rate <= centre * 10**decades
        assert (held.low <= rate <= held.high) is (near and range_.low <= rate <= range_.high)
    else:
        assert held == range_


@pytest.mark.parametrize("centre", [{}, {"momentum": 0.9}])
def test_a_window_without_a_centre_is_the_whole_space(centre: Mapping[str, HyperparameterValue]) -> None:
    space: SearchSpace = {"learning_rate": Float(1e-4, 10.0, log=True), "units": Int(1, 9)}
    assert window(space, centre) == space


def test_what_is_no_range_of_learning_rates_is_left_alone() -> None:
    space: SearchSpace = {"learning_rate": Categorical((0.1, 0.3))}
    assert window(space, {"learning_rate": 0.1}) == space
    assert window({"units": Int(1, 9)}, {"learning_rate": 0.1}) == {"units": Int(1, 9)}


def test_a_window_keeps_scale_and_default() -> None:
    linear = window({"learning_rate": Float(0.0, 1.0, default=0.2)}, {"learning_rate": 0.01})
    assert linear == {"learning_rate": Float(0.001, 0.1, default=0.2)}


@given(DISTRIBUTIONS, st.none() | st.floats(-1e13, 1e13))
def test_the_usual_value_lies_inside(distribution: Distribution, held: float | None) -> None:
    assert inside(distribution, usual_value(distribution, held))


@given(st.integers(-10, 10), st.sampled_from([0.05, "gelu", 100, None]))
def test_a_default_outside_of_its_range_is_moved_into_it(
    default: int, choice: HyperparameterValue | None
) -> None:
    assert inside(Int(1, 5), usual_value(Int(1, 5, default=default), None))
    assert inside(Float(1, 5), usual_value(Float(1, 5, default=default), None))
    assert usual_value(Categorical(("relu", "tanh"), default=choice), None) == "relu"


def test_the_optimizer_s_own_default_comes_before_the_space_s() -> None:
    assert usual_value(Float(0.0, 1.0, default=0.2), 0.9) == 0.9
    assert usual_value(Float(0.0, 1.0, default=0.2), None) == 0.2
    assert usual_value(Categorical((0.9, 0.99), default=0.99), 0.9) == 0.9
    assert usual_value(Int(1, 9), 4.0) == 4
    assert type(usual_value(Categorical((0, 0.5)), 0.0)) is int
