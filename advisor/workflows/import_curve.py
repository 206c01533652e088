"""``advisor import``: the fit and the advice of ``recommend`` on curves that another program measured."""

from collections.abc import Sequence

from advisor.analysis.choice import recommend_batch_size
from advisor.analysis.imported_notes import missing, notes
from advisor.analysis.imported_runs import by_batch_size, result_at, throughput_of
from advisor.analysis.scaling import fit_scaling
from advisor.records.description import Configuration, Fingerprint, WorkloadDescription
from advisor.records.imported import ImportedCurve, ImportedCurves, ImportedRun, ImportRequest
from advisor.records.recommendation import Advice, Spent, Wish
from advisor.records.scaling import BatchSizeResult
from advisor.workflows.ports import Progress

DRAWS = 400
WORKLOAD = "WORKLOAD"
"""Stands for the workload in the command that comes next, since a file of results names none."""


def import_curves(runs: Sequence[ImportedRun], request: ImportRequest, progress: Progress) -> ImportedCurves:
    """Return the curve of each task with its advice, in the order of ``runs``."""
    tasks = list(dict.fromkeys(run.task for run in runs))
    curves = []
    for task in tasks:
        curves.append(_curve(task, [run for run in runs if run.task == task], request))
        progress.advance("curves", len(curves), len(tasks))
    return ImportedCurves(str(request.file), tuple(curves))


def _curve(task: str, runs: Sequence[ImportedRun], request: ImportRequest) -> ImportedCurve:
    results = tuple(result_at(batch_size, of) for batch_size, of in by_batch_size(runs).items())
    advice = _advice(task, runs, results, request)
    lacks = missing(results, advice.throughput)
    told = tuple(notes(runs, advice.throughput, request.prices))
    return ImportedCurve(task, len(runs), advice, lacks, told)


def _advice(
    task: str, runs: Sequence[ImportedRun], results: tuple[BatchSizeResult, ...], request: ImportRequest
) -> Advice:
    description, throughput = _description(task), throughput_of(task, runs)
    fit = fit_scaling(
        observations=[observation for result in results for observation in result.observations],
        uncertainty=[],
        tried=[result.batch_size for result in results],
        overhead=request.overhead,
        seed=request.seed,
        draws=DRAWS,
    )
    wish = Wish(request.deadline_s, request.max_cost, request.objective)
    answers, recommendation, costs = recommend_batch_size(
        description, throughput, results, fit, request.prices, wish, request.seed, WORKLOAD
    )
    return Advice(
        description=description,
        throughput=throughput,
        prices=request.prices,
        results=results,
        fit=fit,
        costs=costs,
        answers=answers,
        recommendation=None if missing(results, throughput) else recommendation,
        spent=Spent(),
    )


def _description(task: str) -> WorkloadDescription:
    """Return what a file of results says of its workload: the name of the curve."""
    return WorkloadDescription(
        name=task,
        fingerprint=Fingerprint("", "", "", "", "", "", "", ""),
        target=None,
        optimizer="",
        optimizer_hyperparameters={},
        search_space={},
        examples={},
        metrics=(),
        initial_metrics={},
        parameter_count=0,
        configuration=Configuration(),
        environment={},
    )
