"""Steps to target against batch size: S(B) = S_min (1 + (B_c / B)^q)^(1/q).

q = 1 is the hyperbola of McCandlish et al. 2018 (arXiv 1812.06162), equation 2.11; a larger q turns more
sharply from perfect scaling (S falls as 1/B) to maximal data parallelism (S = S_min). Examples to target
are E(B) = B S(B) = E_min (1 + (B / B_c)^q)^(1/q), with E_min = S_min B_c.

``parameters`` is an array [..., 3] of (S_min in steps, B_c in examples, q).
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

STEP_EXCESS = 0.1


def log_excess(log_ratio: Array, sharpness: Array) -> Array:
    """Return log(S / S_min) where ``log_ratio`` is log(B_c / B)."""
    return np.logaddexp(0.0, sharpness * log_ratio) / sharpness


def steps_at(parameters: npt.ArrayLike, batch_size: npt.ArrayLike) -> Array:
    """Return steps to target, shape [...], at ``batch_size`` (examples per step)."""
    min_steps, turn, sharpness = _columns(parameters)
    log_ratio = np.log(turn) - np.log(np.asarray(batch_size, dtype=float))
    return np.asarray(min_steps * np.exp(log_excess(log_ratio, sharpness)))


def batch_size_at_example_excess(parameters: npt.ArrayLike, excess: float) -> Array:
    """Return the batch size, shape [...], where examples exceed their minimum by the fraction ``excess``."""
    _, turn, sharpness = _columns(parameters)
    return np.asarray(turn * _turn_ratio(excess, sharpness))


def batch_size_at_step_excess(parameters: npt.ArrayLike, excess: float = STEP_EXCESS) -> Array:
    """Return the batch size, shape [...], where steps exceed their minimum by the fraction ``excess``."""
    _, turn, sharpness = _columns(parameters)
    return np.asarray(turn / _turn_ratio(excess, sharpness))


def min_examples(parameters: npt.ArrayLike) -> Array:
    """Return the fewest examples to target, shape [...], which small batch sizes approach."""
    min_steps, turn, _ = _columns(parameters)
    return np.asarray(min_steps * turn)


def _turn_ratio(excess: float, sharpness: Array) -> Array:
    """Return x such that (1 + x^q)^(1/q) = 1 + ``excess``."""
    return np.asarray(np.expm1(sharpness * np.log1p(excess)) ** (1 / sharpness))


def _columns(parameters: npt.ArrayLike) -> tuple[Array, Array, Array]:
    values = np.asarray(parameters, dtype=float)
    return values[..., 0], values[..., 1], values[..., 2]
