"""Which part of a training step holds throughput back, from parts that were timed by themselves."""

from collections.abc import Sequence

from advisor.analysis.bottleneck_words import Growth, words
from advisor.analysis.step_parts import Shares, StepParts, are_uncertain, is_input_bound, shares_of
from advisor.records.bottleneck import Bottleneck, BottleneckKind
from advisor.records.measurement import BatchThroughput, MeasurementOutcome

LEAST_SHARE = 0.1
"""A smaller part spent in Python functions, waiting for other workers, or starting operations is minor."""
MOSTLY_FIXED = 0.5
"""From this share on that does not grow with the batch size, a step is dispatch rather than arithmetic."""
ALL_FIXED = 0.8
"""From this share on it is dispatch even where memory or data forbid a larger batch."""

_LIMITS = {
    MeasurementOutcome.OUT_OF_MEMORY: BottleneckKind.MEMORY,
    MeasurementOutcome.DATASET_LIMITED: BottleneckKind.DATA,
}


def limit_above(table: Sequence[BatchThroughput], largest: int) -> BottleneckKind | None:
    """Return what forbids the next batch size of the ascending ``table`` above ``largest``.

    Memory, data, or nothing that was seen: a size that failed for another reason says nothing of limits.
    """
    above = next((row.outcome for row in table if row.batch_size > largest), None)
    return _LIMITS.get(above) if above else None


def find_bottleneck(parts: StepParts | None, growth: Growth) -> Bottleneck:
    """Return the verdict at the batch size of ``parts``; None where no batch size ran.

    What a user can mend in the workload (input, Python functions, synchronization) comes first, the
    costliest of them; then what ends the growth of throughput. Where throughput has stopped growing with
    nothing of that kind in the way, the step is arithmetic.
    """
    shares = shares_of(parts, growth.time_model) if parts else {}
    mendable = _mendable(parts, shares) if parts else []
    uncertain = BottleneckKind.UNKNOWN if parts and not mendable and are_uncertain(parts) else None
    costliest = max(mendable, key=lambda one: shares[one].estimate, default=None)
    kind = costliest or uncertain or _limit(growth, shares)
    if kind in mendable:  # The fixed part of a step is then not dispatch alone.
        shares = {one: share for one, share in shares.items() if one is not BottleneckKind.DISPATCH}
    verdict, why, following = words(kind, parts, growth, shares)
    return Bottleneck(
        kind=kind,
        batch_size=parts.row.batch_size if parts else None,
        share=shares.get(kind),
        verdict=verdict,
        why=why,
        next=tuple(following),
        shares={one: share.estimate for one, share in shares.items()},
    )


def _mendable(parts: StepParts, shares: Shares) -> Sequence[BottleneckKind]:
    others = (BottleneckKind.HOST, BottleneckKind.SYNCHRONIZATION)
    found = [kind for kind in others if kind in shares and shares[kind].estimate >= LEAST_SHARE]
    return [BottleneckKind.INPUT, *found] if is_input_bound(parts) else found


def _limit(growth: Growth, shares: Shares) -> BottleneckKind:
    dispatch = shares.get(BottleneckKind.DISPATCH)
    fixed = dispatch.estimate if dispatch else LEAST_SHARE
    if fixed >= ALL_FIXED:
        return BottleneckKind.DISPATCH
    if growth.still_grew is None:
        return BottleneckKind.UNKNOWN
    if growth.still_grew and fixed >= LEAST_SHARE:
        mostly_fixed = BottleneckKind.DISPATCH if fixed >= MOSTLY_FIXED else BottleneckKind.UNKNOWN
        return growth.limit_above or mostly_fixed
    return BottleneckKind.COMPUTE if shares else BottleneckKind.UNKNOWN
