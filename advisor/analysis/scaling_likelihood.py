"""Fits of the scaling curve to many perturbed copies of the same observations at once.

Residuals of log steps follow a logistic distribution, which serves three ends: its tails make the fit
robust, a run that never reached the target enters by the probability of that (a Tobit term) in closed
form, and the loss stays convex in the predicted log steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from advisor.analysis.scaling_curve import log_excess
from advisor.records.scaling import Crossing, Observation, SearchUncertainty

Array = npt.NDArray[np.float64]

# Curves that are known well (the noisy quadratic model at three targets with and without momentum, language
# models of three sizes, MLPerf's references) have q from 1.1 to 1.6 with their best estimates around 1.25.
LOG_SHARPNESS_MEAN, LOG_SHARPNESS_SD = float(np.log(1.2)), 0.22
_LOG_SHARPNESS_LIMITS = float(np.log(0.5)), float(np.log(3.0))
# A curve that turns a hundred times beyond the observed batch sizes is a straight line within them.
_LOG_BEYOND = float(np.log(100.0))
# Two runs may agree by chance: the noise is estimated as if one more residual of 5 % had been seen.
_PRIOR_NOISE_SCALE = 0.05
_LEAST_NOISE_SCALE = 1e-3
# Normal noise of this standard deviation is taken for logistic noise of scale 1 by ``_noise_scale``.
_SD_PER_SCALE = 1.687


@dataclass(frozen=True, eq=False)
class Evidence:
    """Observations as arrays, shape [n], ordered by batch size so that their given order is irrelevant.

    ``log_steps`` is the last step of a censored run. ``bracket_sd`` is how uncertain a crossing is for
    lying between two evaluations (standard deviation of its log). ``size_of`` indexes ``sizes``, the
    distinct batch sizes.
    """

    log_batch: Array
    log_steps: Array
    censored: npt.NDArray[np.bool_]
    bracket_sd: Array
    sizes: npt.NDArray[np.int64]
    size_of: npt.NDArray[np.int64]

    @classmethod
    def of(cls, observations: Sequence[Observation]) -> "Evidence":
        """Return the arrays; a run censored before its first step says nothing and is left out."""
        rows = sorted(
            (seen.batch_size, _log_steps(seen.crossing), seen.crossing.censored, _bracket_sd(seen.crossing))
            for seen in observations
            if not (seen.crossing.censored and seen.crossing.low <= 0)
        )
        batch_sizes = np.array([row[0] for row in rows], dtype=np.int64)
        sizes, size_of = np.unique(batch_sizes, return_inverse=True)
        return cls(
            np.log(batch_sizes.astype(float)),
            np.array([row[1] for row in rows], dtype=float),
            np.array([row[2] for row in rows], dtype=bool),
            np.array([row[3] for row in rows], dtype=float),
            sizes,
            size_of.astype(np.int64),
        )

    def searched_to_the_end(self, uncertainty: Sequence[SearchUncertainty]) -> "Evidence":
        """Return what an endless search is expected to see: steps lower by half of what is left open."""
        expected = self.log_steps - self.log_slack(uncertainty)[self.size_of] / 2
        return replace(self, log_steps=np.where(self.censored, self.log_steps, expected))

    def log_slack(self, uncertainty: Sequence[SearchUncertainty]) -> Array:
        """Return what the search left open at each of ``sizes``."""
        slack = {part.batch_size: part.log_slack for part in uncertainty}
        return np.array([slack.get(int(size), 0.0) for size in self.sizes])

    @property
    def sizes_that_arrived(self) -> npt.NDArray[np.int64]:
        """Distinct batch sizes at which a run reached the target."""
        return self.sizes[np.unique(self.size_of[~self.censored])]

    def size_means(self, values: Array) -> Array:
        """Return the mean of ``values``, shape [..., n], over the runs of each batch size."""
        member = np.eye(len(self.sizes))[self.size_of]
        return np.asarray(values @ member / member.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Copies:
    """D copies of the observations: ``log_steps`` and ``weights`` [D, n], ``prior`` mean of log q [D]."""

    log_steps: Array
    weights: Array
    prior: Array


def fit_point(evidence: Evidence) -> tuple[Array, float]:
    """Return (log S_min, log B_c, log q) of the most probable curve, and the noise scale."""
    copies = Copies(
        evidence.log_steps[None], np.ones((1, len(evidence.log_steps))), np.array([LOG_SHARPNESS_MEAN])
    )
    scale = 2 * _PRIOR_NOISE_SCALE
    curve = start_of(evidence)
    for _ in range(8):
        curve = fit_copies(evidence, copies, scale, curve)
        scale = _noise_scale(evidence, residuals(evidence, curve[0]))
    return curve[0], scale


def start_of(evidence: Evidence) -> Array:
    """Return a curve, shape [1, 3], that turns in the middle of the observed batch sizes.

    Its fewest steps are those of a run that reached the target: one that stopped early says nothing of them.
    """
    fewest = evidence.log_steps[~evidence.censored].min()
    return np.array([[fewest, evidence.log_batch.mean(), LOG_SHARPNESS_MEAN]])


def residuals(evidence: Evidence, curve: Array) -> Array:
    """Return observed less fitted log steps, shape [n], of one curve."""
    return np.asarray(evidence.log_steps - _predict(evidence, curve[None])[0])


def noise_sd(scale: float) -> float:
    """Return the standard deviation of the (normal) noise that is estimated as logistic of ``scale``."""
    return scale * _SD_PER_SCALE


def fit_copies(evidence: Evidence, copies: Copies, scale: float, start: Array, rounds: int = 60) -> Array:
    """Return the most probable curve (log S_min, log B_c, log q) of each copy, shape [D, 3].

    ``start``, shape [1, 3], is where all of them begin.
    Levenberg–Marquardt on all copies at once; the curvature of the logistic loss is replaced by the
    bound of Jaakkola and Jordan 2000, so that it stays positive however far a residual lies.
    """
    problem = _Problem(evidence, np.sqrt(scale**2 + (evidence.bracket_sd / _SD_PER_SCALE) ** 2))
    curves = np.repeat(start, len(copies.prior), axis=0)
    # A curve that turns far outside the observed batch sizes is flat there and would be hard to leave.
    curves[:, 1] = np.clip(curves[:, 1], evidence.log_batch.min(), evidence.log_batch.max())
    loss = problem.loss(copies, curves)
    damping = np.full(len(curves), 1e-3)
    active = np.arange(len(curves))
    for _ in range(rounds):
        part = _take(copies, active)
        step = problem.step(part, curves[active], damping[active])
        proposed = problem.bounded(curves[active] + step)
        new_loss = problem.loss(part, proposed)
        gain = loss[active] - new_loss
        better = gain >= 0
        curves[active[better]], loss[active[better]] = proposed[better], new_loss[better]
        damping[active] = np.clip(np.where(better, damping[active] * 0.2, damping[active] * 5), 1e-9, 1e9)
        settled = better & ((gain < 1e-10) | (gain < 1e-7) & (np.abs(step).max(axis=1) < 1e-4))
        active = active[~settled & (damping[active] < 1e7)]
        if not len(active):
            break
    return curves


def at_lower_limit(evidence: Evidence, curves: Array) -> npt.NDArray[np.bool_]:
    """Return which curves, shape [D, 3], turn so far below the observed batch sizes that they are flat."""
    return np.asarray(curves[:, 1] < evidence.log_batch.min() - _LOG_BEYOND + 1e-6)


def at_upper_limit(evidence: Evidence, curves: Array) -> npt.NDArray[np.bool_]:
    """Return which curves, shape [D, 3], turn so far above the observed ones that they scale perfectly."""
    return np.asarray(curves[:, 1] > evidence.log_batch.max() + _LOG_BEYOND - 1e-6)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The penalised likelihood: logistic noise of scale ``scales`` [n], normal prior on log q."""

    evidence: Evidence
    scales: Array

    def loss(self, copies: Copies, curves: Array) -> Array:
        """Return the negative log posterior, shape [D], up to a constant."""
        z = self._standardized(copies, curves)
        terms = np.logaddexp(0.0, z) + np.where(self.evidence.censored, 0.0, np.logaddexp(0.0, -z))
        penalty = ((curves[:, 2] - copies.prior) / LOG_SHARPNESS_SD) ** 2 / 2
        return np.asarray((copies.weights * terms).sum(axis=1) + penalty)

    def step(self, copies: Copies, curves: Array, damping: Array) -> Array:
        """Return the damped Gauss–Newton step, shape [D, 3]."""
        z = self._standardized(copies, curves)
        # tanh(z/2)/z is the curvature of the bound; a censored run has the upper half of the loss alone.
        bound = np.where(np.abs(z) < 1e-4, 0.5, np.tanh(z / 2) / np.where(z == 0, 1.0, z))
        censored = self.evidence.censored
        pull = copies.weights * np.where(censored, (1 + z * bound) / 2, z * bound) / self.scales
        curvature = copies.weights * np.where(censored, bound / 2, bound) / self.scales**2
        jacobian = _jacobian(self.evidence, curves)
        gradient = np.einsum("dn,dnk->dk", pull, jacobian)
        hessian = np.swapaxes(jacobian * curvature[..., None], 1, 2) @ jacobian
        gradient[:, 2] -= (curves[:, 2] - copies.prior) / LOG_SHARPNESS_SD**2
        hessian[:, 2, 2] += LOG_SHARPNESS_SD**-2
        diagonal = np.arange(3)
        hessian[:, diagonal, diagonal] += damping[:, None] * (hessian[:, diagonal, diagonal] + 1e-9)
        low, high = self._limits
        outward = (curves <= low) & (gradient < 0) | (curves >= high) & (gradient > 0)
        hessian[:, diagonal, diagonal] += 1e12 * outward
        return np.clip(np.linalg.solve(hessian, gradient[..., None])[..., 0], -3.0, 3.0)

    def bounded(self, curves: Array) -> Array:
        """Return the curves moved to within the limits of B_c and q."""
        return np.clip(curves, *self._limits)

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        log_batch = self.evidence.log_batch
        low, high = log_batch.min() - _LOG_BEYOND, log_batch.max() + _LOG_BEYOND
        least, most = _LOG_SHARPNESS_LIMITS
        return np.array([-np.inf, low, least]), np.array([np.inf, high, most])

    def _standardized(self, copies: Copies, curves: Array) -> Array:
        return np.clip((copies.log_steps - _predict(self.evidence, curves)) / self.scales, -700.0, 700.0)


def _predict(evidence: Evidence, curves: Array) -> Array:
    log_ratio = curves[:, 1:2] - evidence.log_batch
    return np.asarray(curves[:, 0:1] + log_excess(log_ratio, np.exp(curves[:, 2:3])))


def _jacobian(evidence: Evidence, curves: Array) -> Array:
    """Return the derivatives of predicted log steps by the three parameters, shape [D, n, 3]."""
    log_ratio, sharpness = curves[:, 1:2] - evidence.log_batch, np.exp(curves[:, 2:3])
    share = 1 / (1 + np.exp(-np.clip(sharpness * log_ratio, -500.0, 500.0)))
    by_log_sharpness = log_ratio * share - log_excess(log_ratio, sharpness)
    return np.stack([np.ones_like(share), share, by_log_sharpness], axis=-1)


def _noise_scale(evidence: Evidence, residual: Array) -> float:
    """Return the scale whose mean of tanh²(z/2) is that of logistic noise, 1/3; one wild run counts once.

    Two parameters are allowed for, and one residual of ``_PRIOR_NOISE_SCALE`` is added.
    """
    seen = np.abs(residual[~evidence.censored])
    bracket = evidence.bracket_sd[~evidence.censored] / _SD_PER_SCALE
    expected = (max(len(seen) - 2, 0) + 1) / 3

    def excess(log_scale: float) -> float:
        scale = np.exp(log_scale)
        z = np.append(seen / np.sqrt(scale**2 + bracket**2), _PRIOR_NOISE_SCALE / scale)
        return float((np.tanh(z / 2) ** 2).sum() - expected)

    low, high = np.log(_LEAST_NOISE_SCALE), np.log(10.0)
    return float(np.exp(brentq(excess, low, high))) if excess(low) > 0 else _LEAST_NOISE_SCALE


def _take(copies: Copies, rows: npt.NDArray[np.int64]) -> Copies:
    return Copies(copies.log_steps[rows], copies.weights[rows], copies.prior[rows])


def _log_steps(crossing: Crossing) -> float:
    steps = crossing.low if crossing.steps is None else crossing.steps
    if not steps > 0:
        raise ValueError(f"a crossing after {steps} steps has no logarithm; steps must be above 0")
    return float(np.log(steps))


def _bracket_sd(crossing: Crossing) -> float:
    """Return the standard deviation of log steps for steps uniform within the bracket; at most 1."""
    if crossing.high is None or crossing.high <= crossing.low:
        return 0.0
    if crossing.low <= 0:
        return 1.0
    return min(float(np.log(crossing.high / crossing.low) / np.sqrt(12.0)), 1.0)
