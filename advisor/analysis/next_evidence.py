"""Which further training would tell most for what it costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.analysis.fresh_seeds import seed_log_sd
from advisor.analysis.scaling_curve import batch_size_at_example_excess, steps_at
from advisor.analysis.statistics import Floats
from advisor.records.scaling import BatchSizeResult, ScalingFit

NARROW = 2.0
MOST_SEEDS = 3
"""More fresh seeds at one batch size take longer than what they narrow is worth to most users."""


@dataclass(frozen=True)
class Option:
    """Trainings that could come next at ``batch_size``: a batch size not tried yet, or one more fresh seed.

    They are expected to take ``examples`` examples and to tell ln(steps to target) with a standard deviation
    of ``log_noise``.
    """

    batch_size: int
    is_new: bool
    examples: float
    log_noise: float


@dataclass(frozen=True)
class Worth:
    """What ``option`` is expected to bring: the share of its standard deviation that a quantity keeps."""

    option: Option
    spread_kept: float


def most_telling(choices: Sequence[Option], fit: ScalingFit) -> Worth | None:
    """Return the option that narrows the half-efficiency batch size most per example, None without any."""
    if not choices:
        return None
    quantity = np.log(batch_size_at_example_excess(fit.draws, 1.0))
    worths = [
        Worth(one, spread_kept(quantity, np.log(steps_at(fit.draws, one.batch_size)), one.log_noise))
        for one in choices
    ]
    return max(worths, key=lambda worth: -math.log(worth.spread_kept) / worth.option.examples)


def is_settled(fit: ScalingFit) -> bool:
    """Return whether the interval of the half-efficiency batch size is within a factor ``NARROW``."""
    half = fit.half_efficiency_batch_size
    return half is not None and half.low > 0 and half.high <= NARROW * half.low


def spread_kept(quantity: Floats, log_steps: Floats, log_noise: float) -> float:
    """Return the standard deviation of ``quantity`` once ``log_steps`` is observed, over that before.

    Both have shape (draws,); the observation strays with standard deviation ``log_noise``. The posterior of
    jointly normal quantities: 1 − cov² / (var (var + noise²)) of the variance is kept (Rasmussen and
    Williams 2006, Gaussian Processes for Machine Learning, equation A.6).
    """
    spread = float(np.var(quantity)) * (float(np.var(log_steps)) + log_noise**2)
    if spread == 0:
        return 1.0
    told = float(np.mean((quantity - quantity.mean()) * (log_steps - log_steps.mean()))) ** 2 / spread
    return math.sqrt(max(1.0 - told, 1e-6))


def options(
    results: Sequence[BatchSizeResult], candidates: Sequence[int], fit: ScalingFit, seeds: int
) -> Sequence[Option]:
    """Return what could be trained next: ``candidates`` between those tried, and a seed more at the others.

    Beyond those tried steps or examples no longer fall, so that these would cost much. ``seeds`` fresh seeds
    measure a new batch size, at which the search is expected to take as many trials as at the others. None
    where ``fit`` has no curve.
    """
    curve = fit.estimate
    if curve is None or not fit.draws:
        return []
    tried = {result.batch_size: result for result in results}
    noise = seed_log_sd([result.crossings for result in results])
    trainings = float(np.mean([result.trials for result in results]))
    slack = max(result.log_slack for result in results) / math.sqrt(12)

    def option(batch_size: int) -> Option:
        examples = batch_size * float(steps_at(curve, batch_size))
        if batch_size in tried:
            return Option(batch_size, False, examples, noise)
        return Option(batch_size, True, trainings * examples, math.hypot(noise / math.sqrt(seeds), slack))

    full = {
        size for size, result in tried.items() if len(result.observations) >= MOST_SEEDS or not result.steps
    }
    between = {size for size in candidates if min(tried) < size < max(tried)}
    return [option(batch_size) for batch_size in sorted({*between, *tried} - full)]
