"""The gradient noise scale from squared norms of gradients at two batch sizes, and what it is used for.

Source: McCandlish et al. 2018, "An empirical model of large-batch training" (arXiv 1812.06162), appendix A.1.
With the gradient G of the loss and the covariance Σ of the gradient of one example, the squared norm of a
gradient over B examples is |G|² + tr Σ / B in expectation. Two batch sizes give both terms, and the simple
noise scale is B_simple = tr Σ / |G|². Batches of one epoch are drawn without replacement, for which G is the
gradient for the source of the training examples rather than for this training split.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from advisor.records.intervals import Interval
from advisor.records.noise_scale import NoiseScale

Array = npt.NDArray[np.float64]

_DRAWS = 2000


def noise_scale(
    half: npt.ArrayLike, whole: npt.ArrayLike, batch_size: int, seed: int, level: float = 0.95
) -> Interval:
    """Return the simple noise scale (examples) with its interval.

    ``whole``, shape [n], holds the squared norm of each of n ≥ 2 batches of ``batch_size`` examples, and
    ``half``, shape [n], the mean of those of its two halves. The noise scale is a ratio of means, and the
    interval comes from a bootstrap over batches. Where its draws leave open whether |G|² is above zero, the
    estimate and the upper end are infinite, and the lower end alone is known. Where hardly any draw has |G|²
    above zero, nothing is known, and the lower end is 0.
    """
    terms = np.stack(_terms(np.asarray(half, float), np.asarray(whole, float), batch_size))
    ratios = _ratios(*_draws_of_means(terms, level, np.random.default_rng(seed)))
    tail = (1 - level) / 2
    # Infinite draws forbid interpolation between neighbours.
    low, high = (float(np.quantile(ratios, q, method="inverted_cdf")) for q in (tail, 1 - tail))
    low = low if math.isfinite(low) else 0.0
    estimate = float(_ratios(*terms.mean(axis=1))) if math.isfinite(high) else math.inf
    return Interval(estimate, min(low, estimate), max(high, estimate), level)


def starting_batch_size(candidates: Sequence[int], hint: NoiseScale | None) -> int:
    """Return the candidate nearest to a quarter of the noise scale, in the logarithm.

    There a search that knows nothing costs few examples, with either end of the curve one or two factors of 4
    away. Without a noise scale it is the middle of ``candidates`` (ascending); where the noise scale has no
    upper end, that or a quarter of its lower end, where this is larger.
    """
    middle = candidates[len(candidates) // 2]
    if hint is None or hint.interval is None:
        return middle
    low, estimate = hint.interval.low, hint.interval.estimate
    wanted = estimate / 4 if math.isfinite(estimate) else max(low / 4, middle)
    return min(candidates, key=lambda candidate: abs(math.log(candidate / max(wanted, 1.0))))


def _terms(half: Array, whole: Array, batch_size: int) -> tuple[Array, Array]:
    """Return unbiased estimates of |G|² and tr Σ from each batch, each of shape [n].

    They are those of appendix A.1 with B_small half of B_big.
    """
    return 2 * whole - half, batch_size * (half - whole)


def _draws_of_means(terms: Array, level: float, random: np.random.Generator) -> Array:
    """Return bootstrap draws of the means of ``terms``, shape [2, n], as shape [2, draws].

    Their distance from the means is enlarged as a t interval is against a bootstrap of few values (the
    expanded percentile interval of Hesterberg 2015, arXiv 1411.5279).
    """
    number = terms.shape[1]
    resampled = terms[:, random.integers(number, size=(_DRAWS, number))].mean(axis=2)
    means = terms.mean(axis=1, keepdims=True)
    quantile = 0.5 + level / 2
    student = float(stats.t.ppf(quantile, number - 1) / stats.norm.ppf(quantile))
    factor = student * math.sqrt(number / (number - 1))
    return np.asarray(means + factor * (resampled - means))


def _ratios(squared_gradient: Array, noise: Array) -> Array:
    """Return noise over squared gradient, infinite where the latter is not above zero."""
    is_positive = squared_gradient > 0
    quotient = np.maximum(noise, 0.0) / np.where(is_positive, squared_gradient, 1.0)
    return np.asarray(np.where(is_positive, quotient, np.inf))
