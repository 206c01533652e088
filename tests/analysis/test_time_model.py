"""The fixed part of a step and the part for each example are recovered."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.throughput import summarize
from advisor.analysis.time_model import fit_time_model
from tests.analysis.evidence import run, summaries


@given(st.floats(1e-7, 1.0), st.floats(1e-9, 1e-3))
def test_the_time_model_is_recovered(fixed_s: float, per_example_s: float) -> None:
    exact = {2**k: 2**k / (fixed_s + per_example_s * 2**k) for k in range(11)}
    model = fit_time_model(summaries(exact))
    assert model is not None
    assert model.residual_log_rms < 0.01
    for size, value in exact.items():
        assert model.fixed_s + model.per_example_s * size == pytest.approx(size / value, rel=0.02)


def test_the_time_model_survives_noise_and_one_bad_size() -> None:
    random = np.random.default_rng(4)
    found = []
    for _ in range(50):
        times = {2**k: (1e-3 + 1e-5 * 2**k) * math.exp(random.normal(0, 0.03)) for k in range(12)}
        times[64] *= 1.6
        model = summarize(run(times)).time_model
        assert model is not None
        found.append((model.fixed_s, model.per_example_s))
    assert np.mean(found, axis=0) == pytest.approx([1e-3, 1e-5], rel=0.06)


def test_time_that_falls_with_the_batch_size_has_no_negative_part() -> None:
    model = fit_time_model(summaries({1: 1 / 1.2, 2: 2 / 1.1, 4: 4 / 1.0}))
    assert model is not None
    assert model.fixed_s == pytest.approx(1.1, rel=0.05)
    assert model.per_example_s == 0


def test_two_sizes_do_not_make_a_time_model() -> None:
    assert fit_time_model(summaries({1: 1, 2: 2})) is None
