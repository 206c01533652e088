"""The fit on curves that others measured; each table names its source."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis.scaling import fit_scaling, predict_steps
from advisor.records.scaling import Crossing, FitOutcome, Observation, ScalingFit

ASSETS = Path(__file__).parents[1] / "assets"


def rows(name: str) -> Iterable[Mapping[str, str]]:
    lines = (ASSETS / name).read_text().splitlines()
    return csv.DictReader(line for line in lines if not line.startswith("#"))


def fit(runs: Iterable[tuple[int, float]], draws: int = 1000) -> ScalingFit:
    """Fit (batch size, steps) of runs that were looked at every 2 %."""
    observations = [Observation(b, Crossing(steps, steps * 0.98, steps)) for b, steps in runs]
    return fit_scaling(observations, [], sorted({b for b, _ in runs}), 0.2, seed=0, draws=draws)


def language_models(size: str) -> list[tuple[int, float]]:
    of_size = [row for row in rows("zhang2024_steps_to_target.csv") if row["model_size"] == size]
    readings = ("steps", "steps_second_reading")
    return [(int(row["batch_size"]), float(row[reading])) for row in of_size for reading in readings]


def mlperf(benchmark: str, keep: Callable[[float], bool] = lambda _: True) -> list[tuple[int, float]]:
    found = [row for row in rows("mlperf_examples_to_target.csv") if row["benchmark"] == benchmark]
    runs = [(int(row["batch_size"]), float(row["examples"])) for row in found]
    return [(b, examples / b) for b, examples in runs if keep(examples)]


def quadratic(target: str) -> list[tuple[int, float]]:
    table = [row for row in rows("nqm_ground_truth.csv") if row["target_loss"] == target]
    return [(int(row["batch_size"]), float(row["steps"])) for row in table]


def digits(optimizer: str) -> list[tuple[int, float]]:
    found = [row for row in rows("digits_steps_to_target.csv") if row["optimizer"] == optimizer]
    return [(int(row["batch_size"]), float(row["steps"])) for row in found]


def median_error_left_out(runs: list[tuple[int, float]]) -> float:
    """Return the median over batch sizes of the relative error of steps predicted from the others."""
    errors = []
    for size in {b for b, _ in runs}:
        rest = fit([run for run in runs if run[0] != size], draws=2)
        log_steps = np.mean([np.log(steps) for b, steps in runs if b == size])
        errors.append(abs(predict_steps(rest, size).estimate / np.exp(log_steps) - 1))
    return float(np.median(errors))


def test_the_critical_batch_size_grows_with_the_size_of_the_model() -> None:
    fits = [fit(language_models(size)) for size in ("85M", "302M", "1.2B")]
    assert [one.outcome for one in fits] == [FitOutcome.OK, FitOutcome.OK, FitOutcome.LOWER_BOUND]
    small, medium, large = (one.critical_batch_size for one in fits)
    assert small is not None
    assert medium is not None
    assert large is not None
    assert small.estimate < medium.estimate < large.estimate
    # The source reads 20 % overhead off its own fits, log-linear over every token budget.
    assert 400 < small.low < small.high < 1200
    assert medium.low > small.estimate


def test_an_entry_error_of_eleven_times_moves_nothing() -> None:
    with_error, without = fit(mlperf("gpt3")), fit(mlperf("gpt3", lambda examples: examples < 1e10))
    assert with_error.outcome is without.outcome is FitOutcome.LOWER_BOUND
    assert with_error.estimate == pytest.approx(without.estimate, rel=0.05)
    assert with_error.critical_batch_size is not None
    assert without.critical_batch_size is not None
    assert with_error.critical_batch_size.low == pytest.approx(without.critical_batch_size.low, rel=0.15)


def test_a_curve_that_still_falls_at_its_end_is_a_lower_bound() -> None:
    fitted = fit(mlperf("bert"))
    assert fitted.outcome is FitOutcome.LOWER_BOUND
    critical = fitted.critical_batch_size
    assert critical is not None
    means = defaultdict(list)
    for batch_size, steps in mlperf("bert"):
        means[batch_size].append(steps * batch_size)
    least = min(sum(examples) / len(examples) for examples in means.values())
    within = [b for b, examples in means.items() if sum(examples) / len(examples) < 1.15 * least]
    assert critical.low < max(within) * 1.5


def test_batch_sizes_of_different_schedules_do_not_make_a_curve() -> None:
    assert fit(mlperf("cosmoflow")).outcome is FitOutcome.NOT_HYPERBOLIC


@pytest.mark.parametrize(("target", "half"), [("0.1", 145), ("0.01", 1200)])
def test_the_noisy_quadratic_model_is_fitted_closely(target: str, half: float) -> None:
    curve = dict(quadratic(target))
    fitted = fit(list(curve.items())[:17])
    assert fitted.outcome is FitOutcome.OK
    assert fitted.half_efficiency_batch_size is not None
    assert fitted.half_efficiency_batch_size.estimate == pytest.approx(half, rel=0.05)
    twice = 2 * min(b * steps for b, steps in curve.items())
    between = [b for b, steps in curve.items() if b * steps <= twice]
    assert max(between) <= fitted.half_efficiency_batch_size.high
    assert fitted.residual_log_rms is not None
    assert fitted.residual_log_rms < 0.04


@pytest.mark.parametrize(
    "runs",
    [
        language_models("85M"),
        language_models("302M"),
        quadratic("0.1"),
        quadratic("0.01"),
        digits("nesterov_0.9"),
    ],
    ids=["85M", "302M", "quadratic 0.1", "quadratic 0.01", "digits"],
)
def test_steps_at_a_batch_size_left_out_are_predicted(runs: list[tuple[int, float]]) -> None:
    assert median_error_left_out(runs) < 0.1


@pytest.mark.parametrize("optimizer", ["nesterov_0.9", "adam"])
def test_five_batch_sizes_of_digits_show_both_ends(optimizer: str) -> None:
    fitted = fit(digits(optimizer))
    assert fitted.outcome is FitOutcome.OK
    half = fitted.half_efficiency_batch_size
    assert half is not None
    assert 50 < half.low < half.high < 200
