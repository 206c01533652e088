"""``advisor report``: everything known about a workload, from the store alone."""

from collections.abc import Iterator

from advisor.analysis.optimizers import search_ranges
from advisor.analysis.throughput import summarize
from advisor.errors import WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Advice
from advisor.records.report import Report
from advisor.records.trials import StudyKind
from advisor.records.tuning import TuningResult
from advisor.workflows.ports import Store
from advisor.workflows.stale import present_measurement, stale_measurement
from advisor.workflows.studies import tuning_result


def report(store: Store, workload: str | None) -> Report:
    """Return what is recorded of ``workload``, by default of the one used last."""
    description = _description(store, workload)
    throughput, advice = _throughput(store, description), store.latest_advice(description.name)
    studies = _studies(store, description)
    return Report(
        workload=description.name,
        throughput=throughput,
        advice=advice,
        studies=studies,
        notes=(*_stale(store, description, advice), *_studies_notes(store, description, advice)),
        next=_next(throughput, advice, studies),
    )


def _description(store: Store, workload: str | None) -> WorkloadDescription:
    descriptions = store.descriptions()
    if not descriptions:
        raise WorkloadError("Nothing is recorded in this database yet. Run `advisor recommend` first.")
    if workload is None:
        return descriptions[0]
    found = [description for description in descriptions if description.name == workload]
    if not found:
        known = ", ".join(description.name for description in descriptions)
        raise WorkloadError(f"Nothing is recorded of workload {workload!r}; there are {known}.")
    return found[0]


def _throughput(store: Store, description: WorkloadDescription) -> Throughput | None:
    """Return the sweep of the present configuration, else the newest."""
    runs = store.latest_measurements(description.name)
    return summarize(present_measurement(store, description) or runs[0]) if runs else None


def _studies(store: Store, description: WorkloadDescription) -> tuple[TuningResult, ...]:
    space = search_ranges(description)
    studies = store.studies(description.name)
    tuned = [study for study in studies if study.kind is StudyKind.TUNE]
    return tuple(tuning_result(study, space, store.trials(study.name)) for study in tuned)


def _stale(store: Store, description: WorkloadDescription, advice: Advice | None) -> Iterator[str]:
    if stale := stale_measurement(store, description):
        yield stale
    elif present_measurement(store, description) is None and store.latest_measurements(description.name):
        yield "The measurement was made under other options than the workload was last used with."
    changed = advice.description.fingerprint.changed(description.fingerprint) if advice else ()
    if changed:
        yield f"The advice is stale ({', '.join(changed).replace('_', ' ')} changed)."


def _studies_notes(store: Store, description: WorkloadDescription, advice: Advice | None) -> Iterator[str]:
    studies = store.studies(description.name)
    earlier = [study for study in studies if study.fingerprint != description.fingerprint.training]
    if earlier:
        yield f"{len(earlier)} studies belong to earlier versions of the workload or its target."
    searched = [
        study for study in studies if study not in earlier and study.kind is StudyKind.STEPS_TO_TARGET
    ]
    trainings = sum(len(store.trials(study.name)) for study in searched) if advice is None else 0
    if trainings:
        sizes = ", ".join(f"{study.batch_size:,}" for study in searched)
        yield f"{trainings} trainings are recorded at batch sizes {sizes}, which no advice rests on yet."


def _next(throughput: Throughput | None, advice: Advice | None, studies: tuple[TuningResult, ...]) -> str:
    if throughput is None:
        return "advisor measure"
    if advice is None or advice.recommendation is None:
        return "advisor recommend"
    return "advisor dashboard" if studies else advice.recommendation.next
