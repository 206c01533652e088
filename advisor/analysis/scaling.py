"""The fit of steps to target against batch size, and what follows from it."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from advisor.analysis.scaling_bootstrap import draw_curves
from advisor.analysis.scaling_curve import (
    batch_size_at_example_excess,
    batch_size_at_step_excess,
    min_examples,
    steps_at,
)
from advisor.analysis.scaling_likelihood import (
    Evidence,
    at_lower_limit,
    at_upper_limit,
    fit_point,
    residuals,
)
from advisor.analysis.scaling_outcome import FEWEST_BATCH_SIZES, judge
from advisor.records.intervals import Interval
from advisor.records.scaling import FitOutcome, Observation, ScalingFit, SearchUncertainty

__all__ = ["fit_scaling", "predict_steps", "steps_at"]

Array = npt.NDArray[np.float64]

LEVEL = 0.95
DRAWS = 1000


def fit_scaling(
    observations: Sequence[Observation],
    uncertainty: Sequence[SearchUncertainty],
    tried: Sequence[int],
    overhead: float,
    seed: int,
    draws: int = DRAWS,
) -> ScalingFit:
    """Fit steps to target against batch size; see :mod:`advisor.analysis.scaling_curve` for the curve.

    The curve is what an endless search is expected to need: below the observations by half of what
    ``uncertainty`` says that their searches left open. ``tried`` are all batch sizes looked at, also those
    that never reached the target; ``overhead`` is the fraction of additional examples that ends perfect
    scaling; ``seed`` decides the ``draws`` bootstrap
    draws behind the intervals. Fewer than three batch sizes that reached the target give ``INSUFFICIENT``.
    """
    evidence = Evidence.of(observations).searched_to_the_end(uncertainty)
    if len(evidence.sizes_that_arrived) < FEWEST_BATCH_SIZES:
        return ScalingFit(FitOutcome.INSUFFICIENT, overhead)
    curve, scale = fit_point(evidence)
    curves = draw_curves(evidence, uncertainty, curve, scale, draws, np.random.default_rng(seed))
    ends = _open_ends(evidence, curves)
    outcome = judge(evidence, uncertainty, curve, ends)
    point, drawn = np.exp(curve), np.exp(curves)
    open_low = ends[0] or outcome is FitOutcome.UPPER_BOUND
    open_high = ends[1] or outcome is FitOutcome.LOWER_BOUND
    critical, half, useful = (
        _interval(float(solve(point)), solve(drawn), open_low, open_high)
        for solve in (
            partial(batch_size_at_example_excess, excess=overhead),
            partial(batch_size_at_example_excess, excess=1.0),
            batch_size_at_step_excess,
        )
    )
    return ScalingFit(
        outcome=outcome,
        overhead=overhead,
        min_steps=_interval(float(point[0]), drawn[:, 0], open_low=open_high),
        min_examples=_interval(float(min_examples(point)), min_examples(drawn), open_low=open_low),
        critical_batch_size=critical,
        half_efficiency_batch_size=half,
        maximum_useful_batch_size=useful,
        sharpness=float(point[2]),
        residual_log_rms=float(np.sqrt(np.mean(residuals(evidence, curve)[~evidence.censored] ** 2))),
        extrapolated=_outside([*tried, *evidence.sizes.tolist()], critical, half, useful),
        estimate=_triple(point),
        draws=tuple(_triple(row) for row in drawn),
    )


def predict_steps(fit: ScalingFit, batch_size: int) -> Interval:
    """Return steps to target at ``batch_size`` on the fitted curve, with the interval of its draws.

    Raises ValueError where the fit has no curve (``INSUFFICIENT``).
    """
    if fit.estimate is None:
        raise ValueError(f"a fit without a curve predicts no steps: {fit.outcome}")
    estimate = float(steps_at(fit.estimate, batch_size))
    return _interval(estimate, steps_at(fit.draws, batch_size))


def _outside(looked_at: Sequence[int], *batch_sizes: Interval) -> tuple[str, ...]:
    """Return the names of the batch sizes that lie outside those looked at."""
    names = ("critical_batch_size", "half_efficiency_batch_size", "maximum_useful_batch_size")
    low, high = min(looked_at), max(looked_at)
    return tuple(
        name
        for name, batch_size in zip(names, batch_sizes, strict=True)
        if not low <= batch_size.estimate <= high
    )


def _open_ends(evidence: Evidence, curves: Array) -> tuple[bool, bool]:
    """Return whether the intervals reach down to flat curves, and up to perfect scaling throughout."""
    outside = (1 - LEVEL) / 2
    flat, straight = at_lower_limit(evidence, curves), at_upper_limit(evidence, curves)
    return bool(flat.mean() > outside), bool(straight.mean() > outside)


def _interval(estimate: float, drawn: Array, open_low: bool = False, open_high: bool = False) -> Interval:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(
        estimate,
        0.0 if open_low else min(float(low), estimate),
        float("inf") if open_high else max(float(high), estimate),
        LEVEL,
    )


def _triple(row: Array) -> tuple[float, float, float]:
    min_steps, turn, sharpness = (float(value) for value in row)
    return min_steps, turn, sharpness
