"""How the lines of a curve that another program measured were read, in sentences."""

from collections.abc import Iterator, Sequence

from advisor.analysis.imported_runs import Runs, by_batch_size, by_learning_rate
from advisor.analysis.quantities import number
from advisor.analysis.scaling_outcome import FEWEST_BATCH_SIZES
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Prices
from advisor.records.scaling import BatchSizeResult

FEWEST_TIMED = 2


def missing(results: Sequence[BatchSizeResult], throughput: Throughput) -> str:
    """Return what keeps the curve from a recommendation, or nothing."""
    reached = [result.batch_size for result in results if result.steps is not None]
    if len(reached) < FEWEST_BATCH_SIZES:
        found = f" ({', '.join(map(number, reached))})" if reached else ""
        return (
            f"{len(reached) or 'None'} of {len(results)} batch sizes reached the target{found}; a curve "
            f"needs at least {FEWEST_BATCH_SIZES}."
        )
    timed = [row.batch_size for row in throughput.table if row.batch_size in reached]
    if len(timed) < FEWEST_TIMED:
        where = f" at {FEWEST_TIMED} batch sizes or more that reached the target" if throughput.table else ""
        return (
            f"To recommend a batch size it takes the time per step{where}, in seconds, in a column "
            "time_per_step_s: time to target is steps to target times that."
        )
    return ""


def notes(runs: Runs, throughput: Throughput, prices: Prices) -> Iterator[str]:
    """Yield what a reader should know of how the runs were read, the gravest first."""
    yield from _note_on_mixed_curves(runs)
    yield _note_on_learning_rates(runs)
    if not any(run.crossing.high and run.crossing.low < run.crossing.high for run in runs):
        yield (
            "The steps are taken as exact. Where they are known at evaluations alone, say in a column "
            "evaluated_every how many steps lie between these."
        )
    if any(time_s.low == time_s.high for row in throughput.table if (time_s := row.time_per_step_s)):
        yield "Times per step that the file tells once, or always alike, are taken as exact."
    if throughput.table and (prices.price_per_device_hour is not None or prices.power_w is not None):
        yield "Device-hours, money and energy are those of one device."


def _note_on_mixed_curves(runs: Runs) -> Iterator[str]:
    for column in runs[0].unread:
        sizes: dict[str, set[int]] = {}
        for run in runs:
            sizes.setdefault(run.unread[column], set()).add(run.batch_size)
        if len(sizes) > 1 and all(len(of) >= FEWEST_BATCH_SIZES for of in sizes.values()):
            values = ", ".join(list(sizes)[:5]) + (", …" if len(sizes) > 5 else "")
            yield (
                f"All lines were taken for one curve, although they differ in {column} ({values}). If it "
                f"tells curves apart, say --column task={column}; if it is the seed, --column seed={column}."
            )


def _note_on_learning_rates(runs: Runs) -> str:
    sizes = by_batch_size(runs).values()
    several = sum(len(by_learning_rate(of)) > 1 for of in sizes)
    if several:
        return (
            f"Several learning rates were run at {number(several)} of {number(len(sizes))} batch sizes. At "
            "each the best by the geometric mean of its steps was taken, and the other lines only served to "
            "choose it. The same runs chose and measured, so its steps look a little too few."
        )
    known = any(run.learning_rate is not None for run in runs)
    return (
        f"The file {'has one learning rate at each batch size' if known else 'names no learning rates'}. The "
        "curve is that of the model only where they were tuned at each batch size."
    )
