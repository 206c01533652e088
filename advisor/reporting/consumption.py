"""What a larger batch size does to resource consumption, and when an upfront cost has paid off, in words."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType

from advisor.analysis.quantities import count, number
from advisor.records.intervals import Interval
from advisor.records.recommendation import BreakEven, Change, ConsumptionChange, Recommendation
from advisor.reporting.render import bullet, paragraph

_WORDS = {
    Change.REDUCES: "a larger batch reduces resource consumption",
    Change.UNCHANGED: "a larger batch leaves resource consumption unchanged, within noise",
    Change.INCREASES: "a larger batch increases resource consumption",
}


def consumption_parts(recommendation: Recommendation, currency: str) -> Iterator[RenderableType]:
    """Yield what batch size does to resource consumption, what is traded off, and each break-even."""
    yield from (bullet(_change(change)) for change in recommendation.consumption)
    for _, rows in groupby(recommendation.break_even, key=lambda row: row.batch_size):
        yield bullet(_break_even(list(rows), currency))
    if len(recommendation.pareto) == 1:
        yield paragraph(
            "On the same devices at one price all resources are proportional to time, so that the fastest to "
            "the target is the cheapest, and time, cost and balanced have one answer."
        )
    elif recommendation.pareto:
        sizes = ", ".join(number(size) for size in recommendation.pareto)
        yield paragraph(f"Nothing is better in every resource than batch size {sizes} (the Pareto set).")


def _change(change: ConsumptionChange) -> str:
    ratio = change.ratio
    return (
        f"From batch size {change.smaller:,} to {change.larger:,} {_WORDS[change.change]}: "
        f"× {number(ratio.estimate)} ({number(ratio.low)}–{number(ratio.high)})."
    )


def _break_even(rows: Sequence[BreakEven], currency: str) -> str:
    """Say when a change to one batch size has paid off; ``rows`` compare it with one other each."""
    first = rows[0]
    against = "; ".join(_against(row, currency) for row in rows)
    upfront = f"{number(float(first.upfront))} {currency}"
    return f"Changing to batch size {first.batch_size:,} costs {upfront} once: {against}."


def _against(row: BreakEven, currency: str) -> str:
    if row.against is None:
        return "every other batch size has an upfront cost too, so there is none to compare with"
    if row.saving is None or row.trainings is None:
        return "what it saves is not known, since its time to target is not"
    saving = f"{number(abs(row.saving))} {currency} a training"
    if math.isinf(row.trainings.estimate):
        return f"against {row.against:,} it never pays, at {saving} more"
    paid_off = f"it has paid off after {_trainings(row.trainings)} trainings"
    return f"against {row.against:,}, saving {saving}, {paid_off}"


def _trainings(trainings: Interval) -> str:
    estimate, low = count(trainings.estimate), count(trainings.low)
    if math.isinf(trainings.high):
        return f"{estimate} (at least {low}; the saving may be noise)"
    return f"{estimate} ({low}–{count(trainings.high)})"
