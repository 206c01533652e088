"""Bootstrap draws of the scaling curve.

Half of the draws perturb the fitted curve by the residuals with random signs and sizes (a wild bootstrap,
batch size by batch size), half reweigh batch sizes and runs within them at random (the Bayesian bootstrap
of Rubin 1981). Each draw also draws what the search left open, where in its bracket a crossing lies, and
the mean of the prior on q, so that an undecided q is spread as its prior is.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from advisor.analysis.scaling_likelihood import (
    LOG_SHARPNESS_MEAN,
    LOG_SHARPNESS_SD,
    Copies,
    Evidence,
    fit_copies,
    noise_sd,
    residuals,
)
from advisor.records.scaling import SearchUncertainty

Array = npt.NDArray[np.float64]


def draw_curves(
    evidence: Evidence,
    uncertainty: Sequence[SearchUncertainty],
    curve: Array,
    scale: float,
    draws: int,
    random: np.random.Generator,
) -> Array:
    """Return curves (log S_min, log B_c, log q) around ``curve``, shape [``draws``, 3]."""
    wild = draws // 2
    log_steps = np.repeat(evidence.log_steps[None], draws, axis=0)
    log_steps[:wild] += _wild_noise(evidence, curve, scale, wild, random) - residuals(evidence, curve)
    log_steps += evidence.bracket_sd * random.standard_normal(log_steps.shape)
    log_steps -= _search_slack(evidence, uncertainty, draws, random)
    # A censored run stays censored where it was.
    log_steps[:, evidence.censored] = evidence.log_steps[evidence.censored]
    weights = np.ones_like(log_steps)
    weights[wild:] = _random_weights(evidence, draws - wild, random)
    prior = random.normal(LOG_SHARPNESS_MEAN, LOG_SHARPNESS_SD, draws)
    return fit_copies(evidence, Copies(log_steps, weights, prior), scale, curve[None])


def _wild_noise(
    evidence: Evidence, curve: Array, scale: float, draws: int, random: np.random.Generator
) -> Array:
    """Return noise, shape [draws, n]: one part shared by the runs of a batch size, one that sums to 0.

    The shared part has the size of the batch size's own residual, averaged with the common noise since
    one residual says little. Residuals are enlarged for the parameters fitted to them, and the noise as a
    whole by a draw of how uncertain its level is.
    """
    wildest = 3 * noise_sd(scale)
    residual = np.clip(residuals(evidence, curve), -wildest, wildest)
    runs, groups = np.bincount(evidence.size_of), len(evidence.sizes)
    shared = evidence.size_means(residual)
    common = noise_sd(scale) ** 2 / runs
    shared_sd = np.sqrt((shared**2 * groups / max(groups - 2, 1) + common) / 2)
    within = (residual - shared[evidence.size_of]) * np.sqrt(runs / np.maximum(runs - 1, 1))[evidence.size_of]
    apart = within * random.standard_normal((draws, len(residual)))
    apart -= evidence.size_means(apart)[:, evidence.size_of]
    together = (shared_sd * random.standard_normal((draws, groups)))[:, evidence.size_of]
    freedom = max(len(residual) - 2, 0) + 1
    level = np.sqrt(freedom / random.chisquare(freedom, draws))
    return np.asarray((together + apart) * level[:, None])


def _random_weights(evidence: Evidence, draws: int, random: np.random.Generator) -> Array:
    """Return weights, shape [draws, n], of mean 1 over batch sizes and over the runs of each."""
    of_size = random.exponential(size=(draws, len(evidence.sizes)))
    of_size /= of_size.mean(axis=1, keepdims=True)
    of_run = random.exponential(size=(draws, len(evidence.log_steps)))
    of_run /= evidence.size_means(of_run)[:, evidence.size_of]
    return np.asarray(of_size[:, evidence.size_of] * of_run)


def _search_slack(
    evidence: Evidence, uncertainty: Sequence[SearchUncertainty], draws: int, random: np.random.Generator
) -> Array:
    """Return how far below what is expected of them the best hyperparameters may lie, shape [draws, n]."""
    width = evidence.log_slack(uncertainty)
    return np.asarray((width * random.uniform(-0.5, 0.5, (draws, len(width))))[:, evidence.size_of])
