"""``advisor measure``: time per step at each batch size, up to what data and memory allow."""

from collections.abc import Sequence

from advisor.analysis.throughput import precise_enough, split_warm_up, summarize
from advisor.errors import (
    OutOfMemoryError,
    SessionError,
    SessionTimeoutError,
    SuspectedMemoryError,
    WorkloadError,
)
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, MeasurementRun, Throughput
from advisor.records.requests import BatchSizes, MeasureRequest
from advisor.records.session import BlockTiming
from advisor.workflows.ports import TrainingSession
from advisor.workflows.tools import SessionKeeper, Tools

BLOCKS_PER_SECOND = 20
"""Blocks that a second is cut into: enough to see drift, few enough that synchronization costs nothing."""
LEAST_BLOCKS = 4
SEED = 0


def measure(tools: Tools, request: MeasureRequest) -> Throughput:
    """Measure what is missing of the request and return all that is known in this configuration."""
    with SessionKeeper(tools.sessions) as keeper:
        description = keeper.session().describe()
        tools.store.save_description(description)
        return ensure_measured(tools, keeper, description, request)


def ensure_measured(
    tools: Tools,
    keeper: SessionKeeper,
    description: WorkloadDescription,
    request: MeasureRequest,
) -> Throughput:
    """Return the throughput at all batch sizes known, measuring those of the request that are not.

    A recorded measurement whose timing fingerprint differs is stale: it is named, and not used. A batch
    size that did not run is tried again: there may be more memory by now.
    """
    recorded = _recorded(tools, description)
    sweep = _Sweep(tools, keeper, description, request, recorded)
    batch_sizes = asked_batch_sizes(request.batch_sizes, description.training_examples)
    for done, batch_size in enumerate(batch_sizes, start=1):
        if not sweep.measure(batch_size):
            break
        tools.progress.advance("batch sizes measured", done, len(batch_sizes))
    run = _recorded(tools, description)
    assert run is not None
    if all(row.outcome is MeasurementOutcome.FAILED for row in run.measurements):
        raise WorkloadError(f"No batch size could be trained. {run.measurements[0].detail.splitlines()[0]}")
    return summarize(run)


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


def check_batch_size(batch_size: int, examples: int) -> None:
    """Raise :class:`~advisor.errors.WorkloadError` where ``examples`` cannot fill one batch."""
    if not 1 <= batch_size <= examples:
        raise WorkloadError(
            f"Batch size {batch_size} cannot be trained: the training split has {examples:,} examples. "
            f"Name batch sizes from 1 to {examples}."
        )


def _recorded(tools: Tools, description: WorkloadDescription) -> MeasurementRun | None:
    runs = tools.store.latest_measurements(description.name)
    timing = description.fingerprint.timing
    matching = next((run for run in runs if run.fingerprint.timing == timing), None)
    if matching is None and runs:
        changed = ", ".join(runs[0].fingerprint.changed(description.fingerprint)).replace("_", " ")
        tools.progress.say(
            f"The measurement of {runs[0].measured_at} is stale ({changed} changed): measuring again."
        )
    return matching


class _Sweep:
    """One pass over growing batch sizes; every size is recorded as soon as it is known."""

    def __init__(
        self,
        tools: Tools,
        keeper: SessionKeeper,
        description: WorkloadDescription,
        request: MeasureRequest,
        recorded: MeasurementRun | None,
    ) -> None:
        self._tools, self._keeper, self._request = tools, keeper, request
        self._description = description
        self._known = {row.batch_size: row for row in recorded.measurements} if recorded else {}

    def measure(self, batch_size: int) -> bool:
        """Make sure that ``batch_size`` is known; return whether larger ones are worth trying."""
        row = self._known.get(batch_size)
        if row is None or not self._is_final(row):
            row = self._run(batch_size)
            self._remember(row)
            if row.detail:
                self._tools.progress.say(f"Batch size {batch_size:,}: {row.detail.splitlines()[0]}")
        return row.outcome not in (MeasurementOutcome.OUT_OF_MEMORY, MeasurementOutcome.DATASET_LIMITED)

    def _is_final(self, row: BatchMeasurement) -> bool:
        if row.outcome is MeasurementOutcome.OK:
            precise = precise_enough(row.blocks, self._request.precision)
            return precise or _timed_s(row.warm_up_blocks + row.blocks) >= self._request.seconds
        return row.outcome is MeasurementOutcome.DATASET_LIMITED

    def _run(self, batch_size: int) -> BatchMeasurement:
        if batch_size > self._description.training_examples:
            return BatchMeasurement(batch_size, MeasurementOutcome.DATASET_LIMITED, self._limited_by_data())
        self._tools.progress.say(f"Measuring batch size {batch_size:,}.")
        try:
            return self._time(batch_size)
        except SuspectedMemoryError:
            self._keeper.drop()  # The kill may have had another cause: only a second one is believed.
        except SessionError as error:
            return self._failed(batch_size, error)
        except WorkloadError as error:
            return BatchMeasurement(batch_size, MeasurementOutcome.FAILED, str(error))
        try:
            return self._time(batch_size)
        except SessionError as error:
            return self._failed(batch_size, error)

    def _time(self, batch_size: int) -> BatchMeasurement:
        return time_batch_size(
            self._keeper.session(), batch_size, self._request.seconds, self._request.precision
        )

    def _failed(self, batch_size: int, error: SessionError) -> BatchMeasurement:
        self._keeper.drop()
        return BatchMeasurement(batch_size, _outcome(error), _detail(error))

    def _limited_by_data(self) -> str:
        return f"The training split has {self._description.training_examples:,} examples."

    def _remember(self, row: BatchMeasurement) -> None:
        self._known[row.batch_size] = row
        self._tools.store.add_measurements(
            self._description.name,
            self._description.fingerprint,
            self._description.configuration,
            self._description.environment,
            [row],
        )


def time_batch_size(
    session: TrainingSession, batch_size: int, seconds: float, precision: float
) -> BatchMeasurement:
    """Time blocks of steps at ``batch_size`` until they are precise enough or ``seconds`` are used up."""
    preparation = session.reset(batch_size, {}, SEED)
    blocks: list[BlockTiming] = [session.train(1)]
    while len(blocks) <= LEAST_BLOCKS or (_timed_s(blocks) < seconds and not _settled(blocks, precision)):
        blocks.append(session.train(_steps_per_block(blocks[-1])))
    warm_up, steady = split_warm_up(blocks)
    return BatchMeasurement(
        batch_size,
        MeasurementOutcome.OK,
        "",
        tuple(warm_up),
        tuple(steady),
        preparation.compile_s,
        session.peak_memory_bytes(),
    )


def _timed_s(blocks: Sequence[BlockTiming]) -> float:
    return sum(block.seconds for block in blocks)


def _steps_per_block(last: BlockTiming) -> int:
    """Return how many steps fill a block, growing at most tenfold on what the last block showed."""
    wanted = last.steps / (BLOCKS_PER_SECOND * max(last.seconds, 1e-9))
    return max(1, min(round(wanted), 10 * last.steps))


def _settled(blocks: Sequence[BlockTiming], precision: float) -> bool:
    return len(blocks) >= BLOCKS_PER_SECOND // 2 and precise_enough(blocks, precision)


def _outcome(error: SessionError) -> MeasurementOutcome:
    if isinstance(error, OutOfMemoryError):
        return MeasurementOutcome.OUT_OF_MEMORY
    return MeasurementOutcome.TIMEOUT if isinstance(error, SessionTimeoutError) else MeasurementOutcome.FAILED


def _detail(error: SessionError) -> str:
    return f"{error.message}\n{error.detail}".strip()
