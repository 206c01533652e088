"""The definitions on the curve: what critical, half-efficiency and maximum useful batch size mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.scaling_curve import (
    batch_size_at_example_excess,
    batch_size_at_step_excess,
    min_examples,
    steps_at,
)

Parameters = tuple[float, float, float]
curves = st.tuples(st.floats(1, 1e6), st.floats(0.1, 1e7), st.floats(0.5, 3.0))
blunt_to_sharp = st.tuples(st.floats(1, 1e6), st.floats(0.1, 1e7), st.floats(1.0, 2.0))
batch_sizes = st.floats(1, 1e8)


def examples_at(parameters: Parameters, batch_size: float) -> float:
    return float(batch_size * steps_at(parameters, batch_size))


@given(curves, st.floats(0.01, 3.0))
def test_examples_exceed_their_minimum_by_the_overhead_at_the_batch_size_named(
    parameters: Parameters, overhead: float
) -> None:
    batch_size = float(batch_size_at_example_excess(parameters, overhead))
    assert examples_at(parameters, batch_size) == pytest.approx((1 + overhead) * min_examples(parameters))


@given(curves)
def test_steps_exceed_their_minimum_by_a_tenth_at_the_maximum_useful_batch_size(
    parameters: Parameters,
) -> None:
    batch_size = float(batch_size_at_step_excess(parameters))
    assert steps_at(parameters, batch_size) == pytest.approx(1.1 * parameters[0])


@given(blunt_to_sharp)
def test_perfect_scaling_ends_before_half_efficiency_and_that_before_maximal_parallelism(
    parameters: Parameters,
) -> None:
    critical = batch_size_at_example_excess(parameters, 0.2)
    half = batch_size_at_example_excess(parameters, 1.0)
    assert critical < half < batch_size_at_step_excess(parameters)


@pytest.mark.parametrize(("sharpness", "expected"), [(1.0, (0.2, 1.0, 10.0)), (1.5, (0.46, 1.5, 3.5))])
def test_multiples_of_the_turn_are_the_known_ones(
    sharpness: float, expected: tuple[float, float, float]
) -> None:
    curve = (7.0, 1.0, sharpness)
    named = (
        batch_size_at_example_excess(curve, 0.2),
        batch_size_at_example_excess(curve, 1.0),
        batch_size_at_step_excess(curve),
    )
    assert np.allclose(named, expected, rtol=0.01)


@given(curves, batch_sizes, st.floats(1.0, 100.0))
def test_a_larger_batch_size_never_needs_more_steps_nor_fewer_examples(
    parameters: Parameters, batch_size: float, factor: float
) -> None:
    assert steps_at(parameters, factor * batch_size) <= steps_at(parameters, batch_size) * (1 + 1e-12)
    assert examples_at(parameters, factor * batch_size) >= examples_at(parameters, batch_size) * (1 - 1e-12)


@given(curves)
def test_ends_of_the_curve_are_perfect_scaling_and_maximal_parallelism(parameters: Parameters) -> None:
    min_steps, turn, _ = parameters
    assert examples_at(parameters, turn * 1e-9) == pytest.approx(min_examples(parameters), rel=1e-3)
    assert steps_at(parameters, turn * 1e9) == pytest.approx(min_steps, rel=1e-3)


def test_the_hyperbola_is_that_of_its_source() -> None:
    batch_size = np.array([1.0, 10.0, 1000.0])
    assert np.allclose(steps_at((50.0, 20.0, 1.0), batch_size), 50 * (1 + 20 / batch_size))


def test_many_curves_are_evaluated_at_once() -> None:
    drawn = np.array([[50.0, 20.0, 1.0], [60.0, 30.0, 1.4]])
    assert np.allclose(steps_at(drawn, 16), [steps_at(one, 16) for one in drawn])
