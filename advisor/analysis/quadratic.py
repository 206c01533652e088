"""The noisy quadratic model: expected loss under SGD with momentum, in closed form.

Source: Zhang et al. 2019, "Which algorithmic choices matter at which batch sizes?" (arXiv 1907.04164),
equations of section 3. The loss is ½ Σ h x², the gradient h x plus noise of variance h / batch size.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

Array = npt.NDArray[np.float64]

# Places of one coordinate's state: E x², E v², E x v, the constant 1, and Σ E x² over the steps before.
_X2, _V2, _XV, _ONE, _SUM = range(5)
_KEPT_STATES = 6


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """Curvatures ``eigenvalues`` (shape [bins]), each shared by ``multiplicities`` coordinates."""

    eigenvalues: Array
    multiplicities: Array

    @classmethod
    def power_law(cls, exponent: float = 1.0, dimension: int = 10_000, bins: int = 100) -> "QuadraticModel":
        """Return eigenvalues i^-``exponent`` for i from 1 to ``dimension``.

        Each is lowered to the next of ``bins`` that are evenly spaced in their logarithm.
        """
        upper = np.geomspace(1, dimension, bins)
        bin_of = np.searchsorted(upper, np.arange(1, dimension + 1)).clip(max=bins - 1)
        multiplicities = np.bincount(bin_of, minlength=bins).astype(float)
        kept = multiplicities > 0
        return cls(upper[kept] ** -exponent, multiplicities[kept])

    @property
    def initial_loss(self) -> float:
        """Expected loss at the start, where every coordinate is a standard normal."""
        return float(self.weights.sum())

    @property
    def weights(self) -> Array:
        """What a unit of E x² in each bin adds to the loss."""
        return 0.5 * self.multiplicities * self.eigenvalues

    @property
    def gradient_noise(self) -> float:
        """Trace of the covariance of the gradient of one example: the sum of the curvatures."""
        return float(self.multiplicities @ self.eigenvalues)

    def largest_learning_rate(self, momentum: float) -> float:
        """Return the learning rate at and above which training diverges: 2 (1 + momentum) / h_max."""
        return 2 * (1 + momentum) / float(self.eigenvalues.max())


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Expected loss of ``model`` step by step, for one batch size, learning rate and momentum.

    The update is v ← momentum · v − learning_rate · gradient, x ← x + v, from v = 0; momentum 0 is SGD.
    Second moments obey a linear recurrence, so any step is reached by products of matrix powers 2^j.
    """

    model: QuadraticModel
    batch_size: int
    learning_rate: float
    momentum: float = 0.0

    def loss(self, step: int) -> float:
        """Return the expected loss after ``step`` steps; infinite where it exceeds all floats."""
        return self._loss(self._state(step))

    def cumulative_loss(self, step: int) -> float:
        """Return the sum of the expected losses after 0, 1, …, ``step`` − 1 steps."""
        return self._total(self._state(step)[:, _SUM].sum(axis=1))

    def squared_gradient_norm(self, step: int) -> float:
        """Return the expected squared norm Σ h² E x² of the gradient without its noise."""
        second_moments = self._state(step)[:, _X2].sum(axis=1)
        return self._total(2 * self.model.eigenvalues * second_moments)

    def steps_to_target(self, target: float, max_steps: int = 10**9) -> int | None:
        """Return the first step at which the loss is at most ``target``; None if there is none.

        The search is exact though a loss may rise and fall: an interval of steps is skipped only where a
        lower bound of the loss within it exceeds the target.
        """
        state, step = self._start, 0
        if self._loss(state) <= target:
            return 0
        for level in count():
            found = self._first_within(state, level, target)
            if found is not None:
                return step + found if step + found <= max_steps else None
            state, step = self._advance(state, level), step + 2**level
            if step >= max_steps or self._total(state[:, _X2, 1]) > target:
                return None
        return None

    def _first_within(self, state: Array, level: int, target: float) -> int | None:
        end = self._advance(state, level)
        if self._lower_bound(state, end) > target:
            return None
        if level == 0:
            return 1 if self._loss(end) <= target else None
        first = self._first_within(state, level - 1, target)
        if first is not None:
            return first
        second = self._first_within(self._advance(state, level - 1), level - 1, target)
        return None if second is None else 2 ** (level - 1) + second

    def _lower_bound(self, start: Array, end: Array) -> float:
        # What noise added never falls; what is left of the start falls steadily where nothing oscillates.
        left = np.where(self._steady, np.minimum(start[:, _X2, 0], end[:, _X2, 0]), 0.0)
        return self._total(start[:, _X2, 1] + left)

    def _state(self, step: int) -> Array:
        """Return the state after ``step`` steps, from the nearest earlier one that is kept."""
        at = max(kept for kept in self._kept if kept <= step)
        state, further = self._kept[at], step - at
        for level in range(further.bit_length()):
            if further >> level & 1:
                state = self._advance(state, level)
        self._kept[step] = state
        if len(self._kept) > _KEPT_STATES:
            del self._kept[next(key for key in self._kept if key)]
        return state

    @cached_property
    def _kept(self) -> dict[int, Array]:
        """The start and the last few states asked for: those of a curve follow one another closely."""
        return {0: self._start}

    def _advance(self, state: Array, level: int) -> Array:
        """Return the state 2^``level`` steps later."""
        with np.errstate(over="ignore", invalid="ignore"):
            while len(self._powers) <= level:
                self._powers.append(self._powers[-1] @ self._powers[-1])
            return self._powers[level] @ state

    def _loss(self, state: Array) -> float:
        return self._total(state[:, _X2].sum(axis=1))

    def _total(self, second_moments: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(self.model.weights @ second_moments)
        return total if np.isfinite(total) else np.inf

    @cached_property
    def _start(self) -> Array:
        """Moments at the start, shape [bins, 5, 2]: those due to the initial weights, those due to noise."""
        start = np.zeros((len(self.model.eigenvalues), 5, 2))
        start[:, _X2, 0] = 1.0
        start[:, _ONE, 1] = 1.0
        return start

    @cached_property
    def _steady(self) -> npt.NDArray[np.bool_]:
        """Where the initial weights decay without oscillation: real positive roots, or no momentum."""
        kappa = self.learning_rate * self.model.eigenvalues
        root = 1 + self.momentum - kappa
        return (root > 0) & (root**2 >= 4 * self.momentum) | (self.momentum == 0)

    @cached_property
    def _powers(self) -> list[Array]:
        """The map of one step, shape [bins, 5, 5], which grows into its powers 1, 2, 4, 8, …"""
        mu = self.momentum
        kappa = self.learning_rate * self.model.eigenvalues
        noise = self.learning_rate * kappa / self.batch_size
        step = np.zeros((len(kappa), 5, 5))
        step[:, _X2, _X2], step[:, _X2, _V2], step[:, _X2, _XV] = (
            (1 - kappa) ** 2,
            mu**2,
            2 * (1 - kappa) * mu,
        )
        step[:, _V2, _X2], step[:, _V2, _V2], step[:, _V2, _XV] = kappa**2, mu**2, -2 * kappa * mu
        step[:, _XV, _X2], step[:, _XV, _V2], step[:, _XV, _XV] = (
            -(1 - kappa) * kappa,
            mu**2,
            mu * (1 - 2 * kappa),
        )
        step[:, [_X2, _V2, _XV], _ONE] = noise[:, None]
        step[:, _ONE, _ONE] = 1.0
        step[:, _SUM, _SUM] = 1.0
        step[:, _SUM, _X2] = 1.0
        return [step]


def best_learning_rate(
    model: QuadraticModel, batch_size: int, target: float, momentum: float = 0.0
) -> tuple[float, int | None]:
    """Return the learning rate that reaches ``target`` in the fewest steps, and those steps.

    A grid over six decades below divergence, then a bounded search between the neighbours of the best.
    """

    def log_steps(log_rate: float) -> float:
        steps = Trajectory(model, batch_size, float(np.exp(log_rate)), momentum).steps_to_target(target)
        return float("inf") if steps is None else float(np.log(max(steps, 1)))

    top = float(np.log(model.largest_learning_rate(momentum)))
    grid = top - np.geomspace(1e-3, np.log(1e6), 60)
    values = [log_steps(float(point)) for point in grid]
    best = int(np.argmin(values))
    bounds = (float(grid[min(best + 1, len(grid) - 1)]), float(grid[max(best - 1, 0)]))
    search = minimize_scalar(lambda point: min(log_steps(point), 1e3), bounds=bounds, method="bounded")
    log_rate = float(search.x) if search.fun < values[best] else float(grid[best])
    rate = float(np.exp(log_rate))
    return rate, Trajectory(model, batch_size, rate, momentum).steps_to_target(target)
