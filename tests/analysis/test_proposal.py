"""A proposed target is reached by every seed well before the end, and never by the untrained model."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.curves import crossing
from advisor.analysis.proposal import (
    MARGIN,
    REACHED_SHARE,
    evaluation_noise,
    late_value,
    proposed_target,
    rounded,
)
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

ACCURACY, LOSS = Target("accuracy", at_least=0.1), Target("loss", at_most=2.3)


def curve(values: Sequence[float], metric: str = "accuracy") -> list[CurvePoint]:
    return [CurvePoint(4 * (index + 1), {metric: value}, 1.0, 0.1, 0.1) for index, value in enumerate(values)]


def rising(rate: float, lucky: int | None = None) -> list[CurvePoint]:
    values = [0.95 - 0.85 * math.exp(-rate * step) for step in range(1, 26)]
    if lucky is not None:
        values[lucky] = 0.999
    return curve(values)


def test_it_is_the_slowest_seed_s_value_at_two_thirds() -> None:
    target = proposed_target([rising(0.3), rising(0.2), rising(0.1)], ACCURACY)
    slow = late_value(rising(0.1), ACCURACY)
    assert slow == pytest.approx(0.95 - 0.85 * math.exp(-0.1 * 14))
    assert slow == pytest.approx(0.740, abs=1e-3) and target == Target("accuracy", at_least=0.8)


def test_one_lucky_evaluation_or_seed_changes_nothing() -> None:
    plain = proposed_target([rising(0.2), rising(0.1)], ACCURACY)
    assert proposed_target([rising(0.2), rising(0.1, lucky=14)], ACCURACY) == plain
    assert proposed_target([rising(0.2), rising(0.1), rising(5.0)], ACCURACY) == plain


def test_digits_are_added_where_the_stricter_side_is_not_reached_in_time() -> None:
    flat = curve([0.1, 0.5, 0.9, *[0.9312] * 22])
    assert proposed_target([flat, flat], ACCURACY) == Target("accuracy", at_least=0.9312)
    creeping = curve([0.93 + 0.0005 * look for look in range(25)])
    assert proposed_target([creeping], ACCURACY) == Target("accuracy", at_least=0.937)


def test_a_loss_is_bounded_from_above() -> None:
    curves = [curve([2.3 * math.exp(-rate * step) for step in range(1, 26)], "loss") for rate in (0.1, 0.2)]
    target = proposed_target(curves, LOSS)
    assert late_value(curves[0], LOSS) == pytest.approx(0.567, abs=1e-3)
    assert target == Target("loss", at_most=0.5)


@pytest.mark.parametrize("value", [0.1, 0.05])
def test_nothing_is_proposed_that_the_untrained_model_has(value: float) -> None:
    assert proposed_target([rising(0.3), curve([value] * 25)], ACCURACY) is None


def test_nothing_is_proposed_where_the_metric_is_not_finite() -> None:
    assert proposed_target([rising(0.3), curve([math.nan] * 25)], ACCURACY) is None


def test_nothing_is_proposed_that_noise_alone_can_reach() -> None:
    random = np.random.default_rng(5)
    seen = [
        proposed_target([curve(random.normal(0.1, 0.02, 25).tolist()) for _ in range(3)], ACCURACY)
        for _ in range(300)
    ]
    assert not any(seen)


def test_noise_is_told_from_progress() -> None:
    random = np.random.default_rng(6)
    rising_values = np.linspace(0.1, 0.9, 400)
    assert evaluation_noise(curve(rising_values.tolist()), ACCURACY) == pytest.approx(0, abs=1e-12)
    noisy = rising_values + random.normal(0, 0.02, 400)
    assert evaluation_noise(curve(noisy.tolist()), ACCURACY) == pytest.approx(0.02, rel=0.15)


@given(
    st.lists(st.floats(0.01, 0.5), min_size=1, max_size=4),
    st.floats(0, 0.05),
    st.integers(0, 10**6),
    st.integers(5, 40),
)
def test_every_seed_reaches_it_in_time(rates: list[float], noise: float, seed: int, looks: int) -> None:
    random = np.random.default_rng(seed)
    curves = [
        curve([1 - 0.9 * math.exp(-rate * step) + random.normal(0, noise) for step in range(1, looks + 1)])
        for rate in rates
    ]
    target = proposed_target(curves, ACCURACY)
    if target is None:
        margin = MARGIN * max(evaluation_noise(one, ACCURACY) for one in curves)
        assert min(late_value(one, ACCURACY) for one in curves) <= 0.1 + margin
        return
    assert target.value > 0.1
    for one in curves:
        steps = crossing(one, target).steps
        assert steps is not None and steps <= REACHED_SHARE * one[-1].step


@given(st.floats(1e-6, 1e6), st.integers(1, 6))
def test_rounding_goes_one_way_and_keeps_digits(value: float, digits: int) -> None:
    up, down = rounded(value, digits, up=True), rounded(value, digits, up=False)
    assert down <= value * (1 + 1e-9) and up >= value * (1 - 1e-9)
    assert up - down <= 10.0 ** (math.floor(math.log10(value)) - digits + 1) * 1.001
    assert float(f"{up:.{digits - 1}e}") == pytest.approx(up, rel=1e-12)
