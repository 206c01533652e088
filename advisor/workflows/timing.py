"""Times blocks of steps, visit by visit, until they are precise enough."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from advisor.analysis.step_times import VisitSpread, precise_enough, steady_blocks
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome
from advisor.records.requests import MeasureRequest
from advisor.records.session import BlockTiming, MemoryUse, StepPart
from advisor.workflows.ports import TrainingSession

VISITS = 2
"""Each batch size is timed so often, unless its steps are long, with others in between: machines drift."""
MOST_VISITS = 5
SHORT_VISIT_S = 0.4
"""Where more time is asked for than ``VISITS`` of this length take, it is shared by up to ``MOST_VISITS``."""
BLOCKS = 10
"""Blocks that a visit is cut into: enough to see drift, few enough that synchronization costs nothing."""
LONGEST_BLOCK_S = 0.05
LEAST_BLOCKS = 4
SINGLE_STEPS = 6
"""Calls of a single step, which tell what a call costs."""
PATIENCE = 3
"""One block does where steps are so long that this many times the time asked for is used up."""
PARTS_SHARE = 0.5
"""Parts of a step are timed for this share of the time that whole steps are."""
SEED = 0

RunBlock = Callable[[int], BlockTiming]


def first_visit(session: TrainingSession, batch_size: int, request: MeasureRequest) -> BatchMeasurement:
    """Time whole steps at ``batch_size``, after one on the largest example where that is asked for."""
    preparation = session.reset(batch_size, {}, SEED)
    probed = MemoryUse()
    if request.probe_longest:
        session.train_part(StepPart.LONGEST, 1)
        probed = session.memory()
        session.reset(batch_size, {}, SEED)
    warm_up, steady = steady_blocks(_time(session.train, _visit_s(request)))
    return BatchMeasurement(
        batch_size,
        MeasurementOutcome.OK,
        "",
        warm_up,
        steady,
        preparation.compile_s,
        max(probed, session.memory(), key=lambda use: use.charged_bytes or use.peak_bytes or 0),
        probed_longest=request.probe_longest,
    )


def another_visit(
    session: TrainingSession, row: BatchMeasurement, request: MeasureRequest
) -> BatchMeasurement:
    """Return ``row`` with its steps timed once more."""
    session.reset(row.batch_size, {}, SEED)
    visit = _time(session.train, _visit_s(request))
    return replace(row, later_visits=(*row.later_visits, visit))


def time_parts(session: TrainingSession, row: BatchMeasurement, request: MeasureRequest) -> BatchMeasurement:
    """Return ``row`` with the parts of its step timed by themselves, and whole steps beside them."""
    session.reset(row.batch_size, {}, SEED)
    seconds = PARTS_SHARE * request.seconds

    def blocks(part: StepPart) -> tuple[BlockTiming, ...]:
        return _time(partial(session.train_part, part), seconds)

    return replace(
        row,
        together_blocks=_time(session.train, seconds),
        compute_blocks=blocks(StepPart.COMPUTE),
        input_blocks=blocks(StepPart.INPUT),
    )


def is_timed(row: BatchMeasurement, request: MeasureRequest, spread: VisitSpread) -> bool:
    """Return whether no more visits than ``row`` has are asked for; ``spread`` is that of its sweep."""
    timed_s = sum(block.seconds for visit in row.visits for block in visit[1:])
    if timed_s >= PATIENCE * request.seconds:
        return True
    is_used_up = len(row.visits) >= VISITS and timed_s >= request.seconds
    return is_used_up or precise_enough(row.visits, spread, request.precision)


def _visit_s(request: MeasureRequest) -> float:
    return max(request.seconds / MOST_VISITS, min(request.seconds / VISITS, SHORT_VISIT_S))


def _time(run: RunBlock, seconds: float) -> tuple[BlockTiming, ...]:
    """Return all blocks in their order: single steps first, unless they take long, then ever longer ones."""
    blocks = [run(1)]
    while not _is_over(blocks[1:], seconds):
        blocks.append(run(_steps_of_next(blocks, seconds)))
    return tuple(blocks)


def _is_over(counted: Sequence[BlockTiming], seconds: float) -> bool:
    timed_s = sum(block.seconds for block in counted)
    enough = LEAST_BLOCKS if timed_s < PATIENCE * seconds else 1
    return timed_s >= seconds and len(counted) >= enough


def _steps_of_next(blocks: Sequence[BlockTiming], seconds: float) -> int:
    """Return how many steps fill a block, growing at most tenfold on what the last block showed."""
    last, block_s = blocks[-1], min(seconds / BLOCKS, LONGEST_BLOCK_S)
    if len(blocks) < SINGLE_STEPS and sum(block.seconds for block in blocks[1:]) < block_s:
        return 1
    return max(1, min(round(last.steps * block_s / max(last.seconds, 1e-9)), 10 * last.steps))
