"""What people read in a terminal: every answer as plain text of 80 columns."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from advisor.analysis.quantities import duration, number
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Advice, ExpectedSpending, RuleOfThumb, SpendingPlan
from advisor.records.report import Report
from advisor.records.trials import Study
from advisor.records.tuning import TuningResult
from advisor.reporting.advice import advice_parts, rule_of_thumb_parts
from advisor.reporting.render import (
    bullet,
    command,
    heading,
    minute,
    pairs,
    paragraph,
    render,
    table,
    verbatim,
)
from advisor.reporting.throughput import throughput_parts
from advisor.reporting.tuned import tuning_parts


def throughput_text(throughput: Throughput, color: bool = False) -> str:
    """Return the table of a measured sweep, its limits and its notes."""
    return render(throughput_parts(throughput), color)


def advice_text(advice: Advice, color: bool = False) -> str:
    """Return the recommended batch size, how sure that is and what to do next, then the tables."""
    return render(advice_parts(advice), color)


def rule_of_thumb_text(found: RuleOfThumb, color: bool = False) -> str:
    """Return the largest batch size that the hardware supports, and the measurement that says so."""
    return render([*rule_of_thumb_parts(found), *throughput_parts(found.throughput)], color)


def tuning_text(result: TuningResult, color: bool = False) -> str:
    """Return the best trial of a study, the checks of its health, and what to do next."""
    return render(tuning_parts(result), color)


def report_text(report: Report, color: bool = False) -> str:
    """Return everything known about a workload."""
    return render(_report_parts(report), color)


def spending_text(plan: SpendingPlan, color: bool = False) -> str:
    """Return what a search may use, before it starts."""
    return render(_spending_parts(plan), color)


def studies_text(studies: Sequence[Study], color: bool = False) -> str:
    """Return the studies as a table, or a single one with all that reproduces it."""
    parts = _study_parts(studies[0]) if len(studies) == 1 else _studies_parts(studies)
    return render(parts, color)


def _report_parts(report: Report) -> Iterator[RenderableType]:
    yield paragraph(f"What is known about {report.workload}.")
    yield from (bullet(note) for note in report.notes)
    if report.advice is not None:
        yield heading("Recommendation")
        yield from advice_parts(report.advice)
    if report.throughput is not None:
        yield heading("Throughput")
        yield from throughput_parts(report.throughput)
    for result in report.studies:
        yield heading(f"Study {result.study.name}")
        yield from tuning_parts(result)
    yield heading("Next")
    yield command(report.next)


def _spending_parts(plan: SpendingPlan) -> Iterator[RenderableType]:
    sizes = ", ".join(number(size) for size in plan.batch_sizes)
    yield paragraph(f"At most, at batch size {sizes} (the dearest ones where the search chooses among more):")
    recorded = f", of which {number(plan.already_recorded_trials)} are recorded"
    yield pairs(_spending_rows(plan, plan.currency, recorded))
    if plan.expected is not None:
        yield paragraph(f"Expected of the trainings to come, {plan.expected.basis}:")
        yield pairs(_spending_rows(plan.expected, plan.currency))


def _spending_rows(
    used: SpendingPlan | ExpectedSpending, currency: str, recorded: str = ""
) -> Iterator[tuple[str, str]]:
    yield "trainings", number(used.trials) + recorded
    yield "examples", number(used.examples)
    yield "training time", duration(used.seconds)
    yield "device-hours", number(float(used.device_hours))
    money = "unknown without a price" if used.money is None else f"{number(float(used.money))} {currency}"
    yield "money", money


def _studies_parts(studies: Sequence[Study]) -> Iterator[RenderableType]:
    if not studies:
        yield paragraph("No study is recorded yet. Run `advisor recommend` or `advisor tune`.")
        return
    columns = ("study", "begun", "revision")
    rows = [(study.name, minute(study.created_at), _revision(study)) for study in studies]
    yield table(columns, rows, left=columns)
    yield paragraph("`advisor studies NAME` shows one of them. * : with changes that were not committed.")


def _study_parts(study: Study) -> Iterator[RenderableType]:
    where = study.configuration
    yield paragraph(f"Study {study.name}")
    yield pairs(
        [
            ("batch size", number(study.batch_size)),
            ("target", str(study.target)),
            ("configuration", f"{where.devices} × {where.device_kind}, {where.precision}"),
            ("settings", ", ".join(f"{name} = {value}" for name, value in study.settings.items())),
            ("begun", minute(study.created_at)),
            ("revision", _revision(study)),
        ]
    )
    yield paragraph("Reproduce it with")
    yield command(study.command)
    if study.note:
        yield paragraph("")
        yield paragraph(study.note)
    yield paragraph("")
    yield from _uncommitted_parts(study)


def _uncommitted_parts(study: Study) -> Iterator[RenderableType]:
    if study.uncommitted_diff:
        yield paragraph("Changes that were not committed:")
        yield verbatim(study.uncommitted_diff)
    else:
        unknown = "unknown, as no git commit was found"
        yield paragraph(f"Changes that were not committed: {'none' if study.revision else unknown}.")


def _revision(study: Study) -> str:
    if study.revision is None:
        return "unknown"
    return study.revision[:10] + ("*" if study.uncommitted_diff else "")
