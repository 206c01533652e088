"""What a fitted scaling curve can say."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from advisor.analysis.scaling_likelihood import Evidence, residuals
from advisor.records.scaling import FitOutcome, SearchUncertainty

Array = npt.NDArray[np.float64]

FEWEST_BATCH_SIZES = 3
# Within a factor of 2 of the end of the range, S(B) or E(B) comes no closer than 1.5 times to its minimum.
END_OF_RANGE = 2.0
# How far whole batch sizes must leave the curve (log), and examples fall or steps rise with the batch size,
# to matter; for less there is the bootstrap's resampling of batch sizes.
LACK_OF_FIT = 0.15
TURNING_BACK = 0.20
_SIGNIFICANCE = 0.02
# A handful of runs estimates noise poorly: four more residuals of 15 % are assumed, the most that seeds give.
_PRIOR_RUNS, _PRIOR_NOISE = 4, 0.15
# Variance of the log steps that the selected learning rate needs more than the best one, in that of one run:
# simulated for one noisy trial at each of many rates a factor of √2 apart, 0.17 to 0.27.
_SELECTION = 0.2


def judge(
    evidence: Evidence, uncertainty: Sequence[SearchUncertainty], curve: Array, open_ends: tuple[bool, bool]
) -> FitOutcome:
    """Return the outcome of the fit of ``curve`` (log S_min, log B_c, log q).

    ``open_ends`` says whether the intervals reach down to curves without a segment of perfect scaling, and
    up to curves without diminishing returns.
    """
    noise = _Noise(evidence, uncertainty)
    if noise.lack_of_fit(curve) or noise.turns_back():
        return FitOutcome.NOT_HYPERBOLIC
    turn, arrived = float(np.exp(curve[1])), evidence.sizes_that_arrived
    below = turn * END_OF_RANGE / float(arrived[-1])
    above = float(arrived[0]) * END_OF_RANGE / turn
    too_high, too_low = below > 1 or open_ends[1], above > 1 or open_ends[0]
    if too_high and too_low:
        return FitOutcome.LOWER_BOUND if below >= above else FitOutcome.UPPER_BOUND
    if too_high:
        return FitOutcome.LOWER_BOUND
    return FitOutcome.UPPER_BOUND if too_low else FitOutcome.OK


class _Noise:
    """Log steps of the batch sizes that arrived, and how far runs and search let their means stray."""

    def __init__(self, evidence: Evidence, uncertainty: Sequence[SearchUncertainty]) -> None:
        self._evidence = evidence
        seen = ~evidence.censored
        runs = np.bincount(evidence.size_of[seen], minlength=len(evidence.sizes))
        totals = np.bincount(evidence.size_of[seen], evidence.log_steps[seen], len(evidence.sizes))
        self._kept = runs > 0
        self._runs = runs[self._kept]
        self._means = totals[self._kept] / self._runs
        self._log_batch = np.log(evidence.sizes[self._kept].astype(float))
        self._slack = evidence.log_slack(uncertainty)[self._kept]
        apart = evidence.log_steps[seen] - (totals / np.maximum(runs, 1))[evidence.size_of[seen]]
        self._freedom = int(seen.sum()) - len(self._runs) + _PRIOR_RUNS
        squares = float((apart**2).sum()) + _PRIOR_RUNS * _PRIOR_NOISE**2
        self._variance = squares / self._freedom + float((evidence.bracket_sd[seen] ** 2).mean())

    def lack_of_fit(self, curve: Array) -> bool:
        """Return whether means leave the curve by more than runs of one batch size leave one another."""
        freedom = len(self._means) - 2
        strayed = self._residual_means(curve)
        allowed = self._variance * (1 / self._runs + _SELECTION) + self._slack**2 / 12
        ratio = float((strayed**2 / allowed).sum()) / freedom
        spread = float(np.sqrt(max((strayed**2 - allowed).sum(), 0.0) / freedom))
        return spread > LACK_OF_FIT and float(stats.f.sf(ratio, freedom, self._freedom)) < _SIGNIFICANCE

    def turns_back(self) -> bool:
        """Return whether a larger batch size clearly needs fewer examples, or more steps, than a smaller."""
        examples_fall = np.triu(self._clearly_above(self._means + self._log_batch), 1)
        steps_rise = np.tril(self._clearly_above(self._means), -1)
        return bool(examples_fall.any() or steps_rise.any())

    def _clearly_above(self, values: Array) -> npt.NDArray[np.bool_]:
        """Return where the value of one batch size (row) is above that of another (column)."""
        open_half = self._slack / 2
        above = (values - open_half)[:, None] - (values + open_half)
        error = np.sqrt(self._variance * (1 / self._runs[:, None] + 1 / self._runs + 2 * _SELECTION))
        pairs = len(values) * (len(values) - 1) / 2
        needed = float(stats.t.isf(_SIGNIFICANCE / pairs, self._freedom)) * error
        return np.asarray(above > np.maximum(TURNING_BACK, needed))

    def _residual_means(self, curve: Array) -> Array:
        seen = ~self._evidence.censored
        residual, size_of = residuals(self._evidence, curve)[seen], self._evidence.size_of[seen]
        return np.bincount(size_of, residual, len(self._evidence.sizes))[self._kept] / self._runs
