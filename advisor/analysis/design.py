"""Which batch size to look at next, and how far a trial there may run."""

import math
from collections.abc import Collection, Mapping, Sequence

FALL_THAT_COUNTS = 0.10
"""Steps (or examples) that fall by less than this share from one batch size to the next do not count."""


def next_batch_size(
    steps: Mapping[int, float | None], candidates: Sequence[int], start: int, most: int
) -> int | None:
    """Return the batch size to look at next on the way outwards, or None where the curve has been spanned.

    ``steps`` maps the batch sizes looked at, in their order, to steps to target (None: not reached). The
    first is the one nearest to ``start``. From there it goes outwards over ``candidates`` (ascending) by
    factors of 4, on either side in turn: upwards until steps have fallen by less than a tenth twice,
    downwards until examples to target stop falling, and downwards alone while nothing has reached the
    target, since small batches take more steps for the same examples; at ``most`` so many in all.
    """
    if not steps:
        return min(candidates, key=lambda candidate: abs(math.log(candidate / start)))
    if len(steps) >= most:
        return None
    up, down = _next_up(steps, candidates), _next_down(steps, candidates)
    first, second = (up, down) if _upwards_is_due(steps) else (down, up)
    return first or second


def from_the_middle(candidates: Sequence[int], looked_at: Collection[int]) -> int | None:
    """Return the candidate nearest to the middle of ``candidates`` that has not been looked at."""
    middle = (len(candidates) - 1) / 2
    rest = [index for index, candidate in enumerate(candidates) if candidate not in looked_at]
    return candidates[min(rest, key=lambda index: abs(index - middle))] if rest else None


def step_limit(
    steps: Mapping[int, float | None], batch_size: int, max_examples: int, margin: float = 3.0
) -> int:
    """Return after how many steps a trial at ``batch_size`` is given up as not reaching the target.

    Steps never rise with the batch size and examples never fall with it (Shallue et al. 2019,
    arXiv 1811.03600), so the nearest batch size known gives a bound; ``margin`` leaves room for noise and
    for learning rates off the optimum. ``max_examples`` bounds every trial.
    """
    ceiling = max(1, max_examples // batch_size)
    reached = {other: value for other, value in steps.items() if value is not None}
    if not reached:
        return ceiling
    nearest = min(reached, key=lambda other: abs(math.log(other / batch_size)))
    bound = reached[nearest] * max(1.0, nearest / batch_size)
    return min(ceiling, max(20, math.ceil(margin * bound)))


def _upwards_is_due(steps: Mapping[int, float | None]) -> bool:
    """Take turns, so that both ends are seen; where nothing has reached the target go down."""
    middle = next(iter(steps))
    above = sum(batch_size > middle for batch_size in steps)
    return any(steps.values()) and above <= len(steps) - 1 - above


def _next_up(steps: Mapping[int, float | None], candidates: Sequence[int]) -> int | None:
    tried = sorted(steps)
    if len(tried) > 2 and all(
        _flat(steps[low], steps[high]) for low, high in zip(tried[-3:-1], tried[-2:], strict=True)
    ):
        return None
    return _outward([c for c in candidates if c > tried[-1]], 4 * tried[-1])


def _next_down(steps: Mapping[int, float | None], candidates: Sequence[int]) -> int | None:
    tried = sorted(steps)
    if len(tried) > 1:
        low, high = tried[:2]
        if _flat(_times(steps[high], high), _times(steps[low], low)):
            return None
    return _outward([c for c in reversed(candidates) if c < tried[0]], tried[0] / 4)


def _outward(beyond: Sequence[int], wanted: float) -> int | None:
    """Return the candidate nearest to a factor of 4 further out; ``beyond`` starts with the nearest."""
    return min(beyond, key=lambda candidate: abs(math.log(candidate / wanted)), default=None)


def _flat(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not None
    return after > before * (1 - FALL_THAT_COUNTS)


def _times(steps: float | None, batch_size: int) -> float | None:
    return None if steps is None else steps * batch_size
