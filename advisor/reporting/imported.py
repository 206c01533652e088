"""Curves that another program measured, as people and programs read them."""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from rich.console import RenderableType

from advisor.analysis.quantities import count, number
from advisor.records.imported import ImportedCurve, ImportedCurves
from advisor.records.scaling import BatchSizeResult, FitOutcome
from advisor.reporting import csv_output, json_output
from advisor.reporting.advice import cost_table, fit_parts, how_sure
from advisor.reporting.consumption import consumption_parts
from advisor.reporting.render import (
    about_count,
    bullet,
    command,
    heading,
    paragraph,
    render,
    table,
    value,
)

_NOT_OF_A_FILE = ("configuration", "target", "spent")
"""What the answer of ``recommend`` says of a workload and of its trainings, which a file says nothing of."""


def text(found: ImportedCurves, color: bool = False) -> str:
    """Return each curve: the answer and how sure it is, then the tables."""
    return render(_parts(found), color)


def as_json(found: ImportedCurves) -> dict[str, Any]:
    """Return each curve as the advice of ``recommend``, with what it lacks and how it was read."""
    return {"file": found.file, "curves": [_json(curve) for curve in found.curves]}


def as_csv(found: ImportedCurves) -> str:
    """Return one line per batch size of each curve, as ``recommend`` does, after the name of its task."""
    rows = [row for curve in found.curves for row in _rows(curve)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    stream = StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _json(curve: ImportedCurve) -> dict[str, Any]:
    advice = json_output.recommend(curve.advice)
    return {
        "task": curve.task or None,
        "runs": curve.runs,
        **{name: known for name, known in advice.items() if name not in _NOT_OF_A_FILE},
        "missing": curve.missing or None,
        "notes": list(curve.notes),
    }


def _rows(curve: ImportedCurve) -> Iterator[Mapping[str, str]]:
    task = {"task": curve.task} if curve.task else {}
    for row in csv.DictReader(StringIO(csv_output.recommend(curve.advice))):
        yield {**task, **row}


def _parts(found: ImportedCurves) -> Iterator[RenderableType]:
    for curve in found.curves:
        if curve.task:
            yield heading(f"Curve {curve.task}")
        yield from _curve_parts(curve)


def _curve_parts(curve: ImportedCurve) -> Iterator[RenderableType]:
    advice = curve.advice
    yield from _answer(curve)
    yield heading("Steps to target (95 % intervals)")
    yield _steps_table(curve)
    if advice.costs:
        yield heading("Resource cost = resource consumption per step × steps (95 % intervals)")
        yield cost_table(advice)
    if advice.recommendation is not None:
        yield from consumption_parts(advice.recommendation, advice.prices.currency)
    yield heading("The fitted curve")
    yield paragraph(str(advice.fit.outcome))
    yield from fit_parts(advice.fit)


def _answer(curve: ImportedCurve) -> Iterator[RenderableType]:
    recommendation = curve.advice.recommendation
    if recommendation is None:
        yield paragraph(_finding(curve), "bold")
        yield paragraph("")
        if curve.advice.fit.outcome is not FitOutcome.INSUFFICIENT:
            yield paragraph(curve.missing)
        yield from (bullet(note) for note in curve.notes)
        return
    yield paragraph(recommendation.why, "bold")
    yield paragraph("")
    yield paragraph(how_sure(recommendation))
    yield from (bullet(caveat) for caveat in (*recommendation.caveats, *curve.notes))
    yield paragraph("")
    yield paragraph("Next, with your own workload in its place, tune the other hyperparameters:")
    yield command(recommendation.next)


def _finding(curve: ImportedCurve) -> str:
    """Return the critical batch size in one sentence, or why there is none."""
    fit = curve.advice.fit
    if fit.outcome is FitOutcome.INSUFFICIENT:
        return curve.missing
    if fit.critical_batch_size is None or curve.advice.answers.critical is None:
        return str(fit.outcome)
    found = f"The critical batch size is {about_count(fit.critical_batch_size)}."
    return found if fit.outcome is FitOutcome.OK else f"{found} {fit.outcome}"


def _steps_table(curve: ImportedCurve) -> RenderableType:
    return table(
        ("batch size", "steps", "examples", "runs", "not reached", "learning rate"),
        [_steps_row(result) for result in curve.advice.results],
    )


def _steps_row(result: BatchSizeResult) -> tuple[str, ...]:
    missed = sum(observation.crossing.censored for observation in result.observations)
    edge = " (edge)" if result.at_edge else ""
    return (
        number(result.batch_size),
        about_count(result.steps_interval) or "not reached",
        count(result.steps * result.batch_size) if result.steps else "",
        number(len(result.observations)),
        number(missed) if missed else "",
        value(result.best["learning_rate"]) + edge if result.best else "",
    )
