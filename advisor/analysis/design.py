"""Which batch size to look at next, and how far a trial there may run."""

import math
from collections.abc import Collection, Mapping, Sequence

from advisor.analysis.scaling_outcome import END_OF_RANGE

FALL_THAT_COUNTS = 0.10
"""Steps (or examples) that fall by less than this share from one batch size to the next do not count."""


FEWEST_REACHED = 4
"""Fewer batch sizes that reached the target show no curve that could be trusted."""
MARGIN_DOWN, MARGIN_UP = 3.0, 2.0
"""A trial may take so many times the steps that another batch size bounds."""
LEAST_LIMIT = 20
"""Steps that a trial may always take: evaluations of few steps are far apart."""
BEYOND_THE_TURN = 1.1 * END_OF_RANGE
"""How many times the turn of the curve the largest batch size is to be: a tenth more than an answer needs."""
GAIN_THAT_COUNTS = 0.05
"""A time to the target that is shorter by less is not worth a larger batch size to try."""


def next_batch_size(
    steps: Mapping[int, float | None], candidates: Sequence[int], start: int, wanted: float, most: int
) -> int | None:
    """Return the batch size to look at next on the way outwards, or None where the curve has been spanned.

    ``steps`` maps the batch sizes looked at to steps to target (None: not reached). The first is the one
    nearest to ``start``. From there it goes over ``candidates`` (ascending) by factors of 4: downwards until
    examples to target have fallen by less than a tenth, since small batches cost few examples, then upwards,
    by a factor of 2 where ``wanted`` is near, until steps have over a factor of 4, which they do from about
    10 times the half-efficiency batch size on, or ``wanted`` is reached. Where too few reached the target,
    others follow, further down if there are any; at most ``most`` in all.
    """
    if not steps:
        return min(candidates, key=lambda candidate: abs(math.log(candidate / start)))
    if len(steps) >= most:
        return None
    outward = _next_down(steps, candidates) or _next_up(steps, candidates, wanted)
    if outward is not None or sum(bool(found) for found in steps.values()) >= FEWEST_REACHED:
        return outward
    return _one_more(steps, candidates)


def wanted_batch_size(turn: float, times_s: Mapping[int, float], tried: Collection[int]) -> float:
    """Return how large a batch size the fitted curve calls for.

    The curve turns at ``turn``, and shows it where a batch size beyond that is known. ``times_s`` are the
    times to the target on the curve by batch size: where one above those ``tried`` is clearly faster, it is
    wanted too.
    """
    bend = BEYOND_THE_TURN * turn
    fastest = min(times_s, key=lambda batch_size: times_s[batch_size], default=0)
    within = [time_s for batch_size, time_s in times_s.items() if batch_size <= max(tried)]
    is_clear = within and times_s[fastest] < (1 - GAIN_THAT_COUNTS) * min(within)
    return max(bend, fastest) if is_clear else bend


def from_the_middle(candidates: Sequence[int], looked_at: Collection[int]) -> int | None:
    """Return the candidate nearest to the middle of ``candidates`` that has not been looked at."""
    middle = (len(candidates) - 1) / 2
    rest = [index for index, candidate in enumerate(candidates) if candidate not in looked_at]
    return candidates[min(rest, key=lambda index: abs(index - middle))] if rest else None


def step_limit(steps: Mapping[int, float | None], batch_size: int, max_examples: int) -> int:
    """Return after how many steps a trial at ``batch_size`` is given up as not reaching the target.

    Steps never rise with the batch size and examples never fall with it (Shallue et al. 2019,
    arXiv 1811.03600), so the nearest batch size known gives a bound. A margin leaves room for noise and for
    learning rates off the optimum; it is smaller upwards, where the bound itself leaves some.
    ``max_examples`` bounds every trial.
    """
    ceiling = max(1, max_examples // batch_size)
    reached = {other: value for other, value in steps.items() if value is not None}
    if not reached:
        return ceiling
    nearest = min(reached, key=lambda other: abs(math.log(other / batch_size)))
    bound = reached[nearest] * max(1.0, nearest / batch_size)
    margin = MARGIN_UP if batch_size > nearest else MARGIN_DOWN
    return min(ceiling, max(LEAST_LIMIT, math.ceil(margin * bound)))


def _one_more(steps: Mapping[int, float | None], candidates: Sequence[int]) -> int | None:
    """Return the next candidate below those tried, else the untried one nearest to those that arrived."""
    lowest = min(steps)
    below = _outward([c for c in reversed(candidates) if c < lowest], lowest / 4)
    if below is not None:
        return below
    reached = [math.log(size) for size, found in steps.items() if found] or [math.log(lowest)]
    middle = math.exp(sum(reached) / len(reached))
    return _outward([candidate for candidate in candidates if candidate not in steps], middle)


def _next_up(steps: Mapping[int, float | None], candidates: Sequence[int], wanted: float) -> int | None:
    tried = sorted(steps)
    largest = tried[-1]
    well_below = [size for size in tried if size <= largest / 4]
    if well_below and _flat(steps[well_below[-1]], steps[largest]):
        return None
    if not any(steps.values()) or wanted <= largest:
        return None
    return _outward([c for c in candidates if c > largest], min(4 * largest, max(2 * largest, wanted / 2)))


def _next_down(steps: Mapping[int, float | None], candidates: Sequence[int]) -> int | None:
    tried = sorted(steps)
    if len(tried) > 1:
        low, high = tried[:2]
        if _flat(_times(steps[high], high), _times(steps[low], low)):
            return None
    return _outward([c for c in reversed(candidates) if c < tried[0]], tried[0] / 4)


def _outward(beyond: Sequence[int], wanted: float) -> int | None:
    """Return the candidate nearest to ``wanted``; ``beyond`` starts with the nearest to those tried."""
    return min(beyond, key=lambda candidate: abs(math.log(candidate / wanted)), default=None)


def _flat(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not None
    return after > before * (1 - FALL_THAT_COUNTS)


def _times(steps: float | None, batch_size: int) -> float | None:
    return None if steps is None else steps * batch_size
