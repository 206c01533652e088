"""``advisor measure``: time per step at each batch size, up to what data and memory allow."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from advisor.analysis.comparison import compare
from advisor.errors import SessionError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import Comparison, MeasurementOutcome, Throughput
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.workflows.examination import examine
from advisor.workflows.ports import SessionFactory
from advisor.workflows.stale import stale_measurement
from advisor.workflows.sweep import Sweep
from advisor.workflows.tools import SessionKeeper, Tools, describe

UNMEASURED = (MeasurementOutcome.OUT_OF_MEMORY, MeasurementOutcome.FAILED, MeasurementOutcome.TIMEOUT)
LAG = 2
"""So many other batch sizes lie between two timings of one."""


def measure(
    tools: Tools, request: MeasureRequest, variants: Mapping[str, SessionFactory] | None = None
) -> Throughput:
    """Measure what is missing of the request and return all that is known in this configuration.

    ``variants`` open sessions of the same workload with an option changed; each is measured side by side,
    batch size by batch size, so that a drift of the machine meets all alike.
    """
    with ExitStack() as stack:
        keeper = stack.enter_context(SessionKeeper(tools.sessions))
        description = describe(tools, keeper)
        others = {
            name: _variant(tools, stack.enter_context(SessionKeeper(sessions)), name, request)
            for name, sessions in (variants or {}).items()
        }
        sweeps = [other for other in others.values() if isinstance(other, Sweep)]
        found = ensure_measured(tools, keeper, description, request, sweeps)
        comparisons = tuple(_compared(name, found, other) for name, other in others.items())
        return replace(found, comparisons=comparisons, notes=(*found.notes, *_of_sharing(found, sweeps)))


def ensure_measured(
    tools: Tools,
    keeper: SessionKeeper,
    description: WorkloadDescription,
    request: MeasureRequest,
    beside: Sequence[Sweep] = (),
) -> Throughput:
    """Return the throughput at all batch sizes known, measuring those of the request that are not.

    A recorded measurement whose timing fingerprint differs is stale: it is named, and not used. Sweeps
    ``beside`` measure the same batch sizes.
    """
    if stale := stale_measurement(tools.store, description):
        tools.progress.say(f"{stale} Measuring again.")
    sweep = Sweep(tools, keeper, description, request)
    sizes = asked_batch_sizes(request.batch_sizes, description.training_examples)
    _run([sweep, *beside], sizes, tools)
    if request.refine:
        sweep.refine()
    _finish([sweep, *beside], tools)
    seen = examine(sweep, tools.progress)
    found = sweep.result()
    found = replace(found, notes=(*found.notes, *seen))
    tried = [row for row in found.table if row.outcome is not MeasurementOutcome.DATASET_LIMITED]
    if tried and all(row.outcome is MeasurementOutcome.FAILED for row in tried):
        raise WorkloadError(f"No batch size could be trained. {tried[0].detail.splitlines()[0]}")
    return found


def asked_batch_sizes(asked: BatchSizes, examples: int) -> Sequence[int]:
    """Return the listed batch sizes, else powers of two up to the first that exceeds the data, ascending."""
    if asked.listed:
        for batch_size in asked.listed:
            check_batch_size(batch_size, examples)
        return sorted(set(asked.listed))
    first = max(0, asked.minimum - 1).bit_length()
    last = min(asked.maximum or 2 * examples, 1 << examples.bit_length()).bit_length()
    powers = [1 << power for power in range(first, last)]
    if not powers:
        raise WorkloadError(
            f"There is no power of two from {asked.minimum:,} to {asked.maximum or examples:,}, which the "
            f"{examples:,} training examples allow. Name batch sizes with --batch-sizes."
        )
    return powers


def batch_sizes_that_ran(
    throughput: Throughput, asked: BatchSizes, description: WorkloadDescription, beyond_saturation: int = 1
) -> Sequence[int]:
    """Return the batch sizes that were asked for and ran, ascending.

    None is above ``beyond_saturation`` times the saturation batch size, unless they are listed or all are.
    Raises WorkloadError where none ran.
    """
    sizes = asked_batch_sizes(asked, description.training_examples)
    ran = [row.batch_size for row in throughput.table if row.time_per_step_s and row.batch_size in sizes]
    if not ran:
        why = next((row.detail.splitlines()[0] for row in throughput.table if row.outcome in UNMEASURED), "")
        raise WorkloadError(f"None of the batch sizes asked for could be trained. {why}".strip())
    if throughput.saturation_batch_size is None or asked.listed:
        return ran
    most = max(beyond_saturation * throughput.saturation_batch_size, ran[0])
    return [batch_size for batch_size in ran if batch_size <= most]


def check_batch_size(batch_size: int, examples: int) -> None:
    """Raise :class:`~advisor.errors.WorkloadError` where ``examples`` cannot fill one batch."""
    if not 1 <= batch_size <= examples:
        raise WorkloadError(
            f"Batch size {batch_size} cannot be trained: the training split has {examples:,} examples. "
            f"Name batch sizes from 1 to {examples}."
        )


def _run(sweeps: Sequence[Sweep], batch_sizes: Sequence[int], tools: Tools) -> None:
    """Let every sweep measure each batch size in turn, until none has a larger one to try.

    A size is timed again ``LAG`` sizes later: by then the machine may have drifted, and what was compiled is
    still there.
    """
    running = list(sweeps)
    for done, batch_size in enumerate(batch_sizes, start=1):
        running = [sweep for sweep in running if sweep.measure(batch_size)]
        last = not running or done == len(batch_sizes)
        tools.progress.advance("batch sizes measured", len(batch_sizes) if last else done, len(batch_sizes))
        if last:
            return
        if done > LAG:
            _measure_again(sweeps, batch_sizes[done - LAG - 1])


def _finish(sweeps: Sequence[Sweep], tools: Tools) -> None:
    """Time batch sizes again until no sweep asks for more, a few of them in turn: those stay compiled."""
    total = len(_unfinished(sweeps))
    while group := _unfinished(sweeps)[: LAG + 1]:
        while waiting := [size for size in _unfinished(sweeps) if size in group]:
            for batch_size in waiting:
                _measure_again(sweeps, batch_size)
        done = max(0, total - len(_unfinished(sweeps)))
        tools.progress.advance("batch sizes timed again", done, total)


def _unfinished(sweeps: Sequence[Sweep]) -> Sequence[int]:
    return sorted({size for sweep in sweeps for size in sweep.unfinished})


def _measure_again(sweeps: Sequence[Sweep], batch_size: int) -> None:
    for sweep in sweeps:
        if batch_size in sweep.unfinished:
            sweep.measure_again(batch_size)


def _variant(tools: Tools, keeper: SessionKeeper, name: str, request: MeasureRequest) -> Sweep | Comparison:
    """Return the sweep of a variant, or what says why there is none."""
    try:
        return Sweep(tools, keeper, keeper.session().describe(), request, name)
    except (SessionError, WorkloadError) as error:
        return Comparison(name, {}, (str(error),))


def _of_sharing(found: Throughput, beside: Sequence[Sweep]) -> Iterator[str]:
    """Yield what side by side means for the largest batch size, where memory ended the sweep."""
    if beside and any(row.outcome is MeasurementOutcome.OUT_OF_MEMORY for row in found.table):
        yield (
            f"The memory was shared by {1 + len(beside)} trainings side by side: measure without --compare "
            "for the largest batch size that fits."
        )


def _compared(name: str, without: Throughput, other: Sweep | Comparison) -> Comparison:
    return other if isinstance(other, Comparison) else compare(name, without, other.result())
