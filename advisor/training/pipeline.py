"""Which stage of an input pipeline is slow, and what helps."""

from collections.abc import Iterable, Sequence

import keras
import numpy as np
import tensorflow as tf

from advisor.analysis.quantities import duration
from advisor.records.bottleneck import InputDiagnosis, PipelineStage, Remedy
from advisor.training.data import DatasetSplit, Split
from advisor.training.remedies import ROUNDS, Bench, Candidates, Change, TimeSteps, without
from advisor.training.stages import Stage, TimedPipeline, shuffle_limit, time_stages
from advisor.training.stopwatch import seconds_per_element
from advisor.training.transformations import Dataset, UnknownStageError

_OURS, _WHOLE = "shuffle and batch", "pipeline"
_MOST_EXCESS = 2.0
_READING_S = 5e-5
"""Reading elements one by one costs some microseconds for each, which batches are spared."""
_NO_PIPELINE = "The training arrays are on the device: there is nothing that producers could do."


def diagnose(
    split: Split,
    batch_size: int,
    seconds: float,
    input_workers: int,
    unused: Sequence[str],
    time_steps: TimeSteps,
) -> InputDiagnosis:
    """Time the stages of the training ``split`` and what may help, each for about ``seconds``.

    ``unused`` are paths of features that nothing reads. ``time_steps`` times whole training steps on another
    split. Arrays on the device have no pipeline, and in 0 seconds nothing is tried. Raises
    :class:`~advisor.errors.SessionError` where this process cannot go on.
    """
    share = _share(split, unused)
    if split.is_resident or seconds <= 0:
        said = (_NO_PIPELINE,) if input_workers and split.is_resident else ()
        return InputDiagnosis(batch_size, (), (), tuple(unused), share, notes=said)
    if isinstance(split, DatasetSplit):
        pipeline = _timed(split.dataset, seconds)
        before = _quick_to_start(split, pipeline, seconds)
        bench = Bench(before, batch_size, seconds, time_steps)
        stages, doubt = _stages(pipeline, bench.input_s / batch_size)
        remedies, notes = _tried(bench, _changes(Candidates(before, pipeline, bench), unused, input_workers))
        notes = tuple(dict.fromkeys((*pipeline.notes, *doubt, *notes)))
    else:
        bench = Bench(split, batch_size, seconds, time_steps)
        stages = (PipelineStage("gather", bench.input_s / batch_size),)
        remedies, notes = _tried(bench, [without(split, unused)] if unused else [])
    return InputDiagnosis(batch_size, stages, remedies, tuple(unused), share, notes=notes)


def _timed(dataset: Dataset, seconds: float) -> TimedPipeline:
    """Time the stages of ``dataset``, or all in one where a stage cannot be looked into."""
    try:
        return time_stages(dataset, seconds)
    except UnknownStageError as stage:
        time_s = seconds_per_element(dataset, seconds)
        return TimedPipeline(dataset, time_s, (Stage(dataset, _WHOLE, time_s),), (_unseen(stage),))


def _changes(candidates: Candidates, unused: Sequence[str], input_workers: int) -> list[Change | str]:
    """Return the changes that apply; where a stage cannot be looked into, those that leave it alone."""
    try:
        return list(candidates.changes(unused, input_workers))
    except UnknownStageError as stage:
        return [_unseen(stage), *([without(candidates.before, unused)] if unused else [])]


def _unseen(stage: UnknownStageError) -> str:
    return f"The stage {stage} could not be looked at with this version of TensorFlow ({tf.__version__})."


def _quick_to_start(split: DatasetSplit, pipeline: TimedPipeline, seconds: float) -> DatasetSplit:
    """Return ``split`` as it was timed, with a small shuffle buffer."""
    quick = DatasetSplit(split.name, pipeline.dataset, split.examples)
    quick.shuffle_buffer = min(split.shuffle_buffer, shuffle_limit(pipeline.time_s, seconds / ROUNDS))
    return quick


def _stages(pipeline: TimedPipeline, example_s: float) -> tuple[tuple[PipelineStage, ...], tuple[str, ...]]:
    """Return the stages, with the shuffle and batch that training adds; ``example_s`` is of all of them.

    Each was timed at another moment: where they are too long for the whole, a sentence takes their place.
    """
    own = PipelineStage(_OURS, max(0.0, example_s - pipeline.time_s))
    stages = (*(PipelineStage(stage.name, stage.time_s) for stage in pipeline.stages), own)
    parts_s = sum(stage.time_per_example_s for stage in stages)
    if parts_s <= _MOST_EXCESS * example_s + _READING_S:
        return stages, ()
    return (), (
        f"Which stage is slow is not known: one by one they took {duration(parts_s)} for each example, all "
        f"together {duration(example_s)}. Measure again (--again) while the machine does nothing else.",
    )


def _tried(bench: Bench, changes: Iterable[Change | str]) -> tuple[tuple[Remedy, ...], tuple[str, ...]]:
    """Return the remedies, the fastest step first, and notes."""
    found = [change if isinstance(change, str) else bench.tried(change) for change in changes]
    remedies = [result for result in found if isinstance(result, Remedy)]
    notes = tuple(result for result in found if isinstance(result, str))
    return tuple(sorted(remedies, key=lambda remedy: remedy.step_after_s)), notes


def _share(split: Split, unused: Sequence[str]) -> float:
    """Return the part of an example's bytes that the features ``unused`` take."""
    first = zip(split.paths, keras.tree.flatten(split.head(1)), strict=True)
    size = sum(np.asarray(leaf).nbytes for path, leaf in first if path in unused)
    return size / max(1, split.example_bytes)
