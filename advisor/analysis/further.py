"""What one more batch size would bring, in words."""

from advisor.analysis.next_evidence import Worth
from advisor.analysis.quantities import count, number
from advisor.analysis.statistics import spread_factor
from advisor.records.scaling import ScalingFit


def further_sentence(worth: Worth | None, fit: ScalingFit) -> str:
    """Say how far one more batch size would narrow the half-efficiency batch size, if one is left."""
    half = fit.half_efficiency_batch_size
    if worth is None or half is None:
        return ""
    size, cost = worth.option.batch_size, f"about {count(worth.option.examples)} examples"
    factor = spread_factor(half)
    if half.low <= 0 or factor == float("inf"):
        return f"One more batch size, {size:,}, would cost {cost} and may bound the critical batch size."
    return (
        f"One more batch size, {size:,}, would cost {cost} and narrow the half-efficiency batch size from a "
        f"factor of {number(factor)} between the ends of its interval to about "
        f"{number(factor**worth.spread_kept)}."
    )
