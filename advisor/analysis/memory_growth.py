"""How much memory a larger batch size will need, from those that ran."""

from collections.abc import Sequence

from advisor.records.session import MemoryUse

NEAR_LIMIT = 0.9
"""A batch size that took a larger share of its limit than this ran near it."""


FURTHEST = 4
"""No batch size more than this many times the largest known is foretold."""
LEAST_GROWTH = 1.1
"""Memory that grew by less from one size to the next has not shown how it grows."""


def predicted_bytes(sizes: Sequence[tuple[int, int]], batch_size: int) -> int | None:
    """Return the memory (bytes) that ``batch_size`` will need; None where that cannot be foretold.

    ``sizes`` are batch sizes with the bytes that each took, ascending. Activations take memory in proportion
    to the batch size, so that the line through the two largest sizes goes on: for a growth beyond noise, and
    not far.
    """
    if len(sizes) < 2:
        return None
    (smaller, less), (larger, more) = sizes[-2:]
    if more < LEAST_GROWTH * less or not larger <= batch_size <= FURTHEST * larger:
        return None
    return more + round((more - less) / (larger - smaller) * (batch_size - larger))


def is_near_limit(use: MemoryUse) -> bool:
    """Return whether less than a tenth of the limit was left; False where either is unknown."""
    if use.limit_bytes is None or use.charged_bytes is None:
        return False
    return use.charged_bytes > NEAR_LIMIT * use.limit_bytes
