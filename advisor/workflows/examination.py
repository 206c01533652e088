"""What a step is made of at the batch size of the verdict: parts timed by themselves, and the pipeline."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from advisor.analysis.step_parts import is_input_bound
from advisor.analysis.throughput import reference_batch_size, step_parts
from advisor.errors import SessionError, WorkloadError
from advisor.records.measurement import BatchMeasurement
from advisor.records.requests import MeasureRequest
from advisor.workflows.ports import Progress
from advisor.workflows.sweep import Sweep
from advisor.workflows.timing import SEED, time_parts

TRIED_SHARE = 0.35
"""Each stage and each change of an input pipeline is timed for this share of the time of whole steps."""
PROFILED_STEPS = 10

Look = Callable[[Sweep, BatchMeasurement, Progress], Sequence[str]]


def examine(sweep: Sweep, progress: Progress) -> Sequence[str]:
    """Look into the step where throughput matters most; what fails takes nothing away.

    Returns sentences about what failed and what was written.
    """
    batch_size = reference_batch_size(sweep.result().table)
    if batch_size is None:
        return ()
    looks: list[tuple[Look, str]] = [(_look, "The step could not be looked into")]
    if sweep.request.profile is not None:
        looks.append((_profile, "The step could not be profiled"))
    said: list[str] = []
    for look, without in looks:
        try:
            said += look(sweep, sweep.rows[batch_size], progress)
        except (SessionError, WorkloadError) as error:
            sweep.keeper.drop()
            said.append(f"{without}: {error}")
    return said


def _look(sweep: Sweep, row: BatchMeasurement, progress: Progress) -> Sequence[str]:
    request = sweep.request
    if row.diagnosis is not None and not _asks_for_more(row, request):
        return ()
    progress.say(f"Looking into a step of batch size {row.batch_size:,}.")
    session = sweep.keeper.session()
    row = time_parts(session, row, request)
    sweep.remember(row)
    bound = is_input_bound(step_parts(row, sweep.spread))
    seconds = TRIED_SHARE * request.seconds if bound or request.input_workers else 0.0
    sweep.remember(replace(row, diagnosis=session.diagnose(seconds, request.input_workers)))
    return ()


def _asks_for_more(row: BatchMeasurement, request: MeasureRequest) -> bool:
    """Return whether a pipeline of so many producers is asked for that was not tried yet."""
    tried = row.diagnosis.input_workers if row.diagnosis else 0
    return request.input_workers not in (0, tried)


def _profile(sweep: Sweep, row: BatchMeasurement, progress: Progress) -> Sequence[str]:
    progress.say(f"Profiling batch size {row.batch_size:,}.")
    folder, session = sweep.request.profile, sweep.keeper.session()
    assert folder is not None
    session.reset(row.batch_size, {}, SEED)
    session.train(1)
    files = session.profile(folder, PROFILED_STEPS)
    named = ", ".join(map(str, files))
    return [f"Profile of {PROFILED_STEPS} steps at batch size {row.batch_size:,}: {named}"]
