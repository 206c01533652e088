"""Batch sizes compared under one budget: as text, JSON and CSV."""

from collections.abc import Iterator

from rich.console import RenderableType

from advisor.analysis.quantities import duration, number
from advisor.records.budget_comparison import BudgetComparison, BudgetResult
from advisor.reporting.advice import spent_sentence
from advisor.reporting.csv_output import interval_columns, written
from advisor.reporting.json_output import Json, plain
from advisor.reporting.render import (
    bullet,
    command,
    heading,
    paragraph,
    render,
    table,
    values,
)


def as_text(comparison: BudgetComparison, color: bool = False) -> str:
    """Return which batch sizes agree, what to mind, and the table."""
    return render(_parts(comparison), color)


def as_json(comparison: BudgetComparison) -> Json:
    """Return the comparison as plain data."""
    return plain(  # type: ignore[no-any-return]
        {
            "workload": comparison.workload,
            "configuration": comparison.configuration,
            "metric": comparison.metric,
            "maximize": comparison.maximize,
            "budget": {comparison.budget.kind.value: comparison.budget.amount},
            "batch_sizes": [_result(result) for result in comparison.results],
            "best_batch_size": comparison.agreement.best,
            "agree_with_the_best": comparison.agreement.agree,
            "run_to_run_spread": comparison.agreement.spread,
            "why": comparison.agreement.sentence,
            "caveats": comparison.caveats,
            "spent": comparison.spent,
            "next": comparison.next,
        }
    )


def as_csv(comparison: BudgetComparison) -> str:
    """Return one line per batch size."""
    return written(
        {
            "batch_size": result.batch_size,
            "steps": result.steps,
            "examples": result.batch_size * result.steps,
            "metric": comparison.metric,
            "value": result.value,
            "values": " ".join(map(str, result.values)),
            "agrees_with_the_best": result.batch_size in comparison.agreement.agree,
            "trials": result.trials,
            "infeasible": result.infeasible,
            "diverged_seeds": result.diverged,
            "at_edge": result.at_edge,
            **interval_columns("time_s", result.time_s),
            **(result.best or {}),
        }
        for result in comparison.results
    )


def _parts(comparison: BudgetComparison) -> Iterator[RenderableType]:
    yield paragraph(comparison.agreement.sentence, "bold")
    yield paragraph("")
    yield from (bullet(caveat) for caveat in comparison.caveats)
    yield heading(f"Best validation {comparison.metric} within {comparison.budget.words}")
    columns = ("batch size", "steps", comparison.metric, "seeds", "time", "diverged", "best hyperparameters")
    rows = [_row(result, result.batch_size in comparison.agreement.agree) for result in comparison.results]
    yield table(columns, rows, left=("best hyperparameters",))
    yield paragraph("The mean of the fresh seeds, and their lowest and highest; = : agrees with the best.")
    yield heading("Spent on this answer")
    yield paragraph(spent_sentence(comparison.spent))
    yield paragraph("")
    yield paragraph("Next, find the batch size that is fastest to a target:")
    yield command(comparison.next)


def _row(result: BudgetResult, agrees: bool) -> tuple[str, ...]:
    return (
        number(result.batch_size),
        number(result.steps),
        "diverged" if result.value is None else f"{result.value:.4g}" + (" =" if agrees else ""),
        f"{min(result.values):.4g}–{max(result.values):.4g}" if result.values else "",
        duration(result.time_s.estimate) if result.time_s else "",
        number(result.infeasible) if result.infeasible else "",
        values((result.best or {}).items()) + (" (edge)" if result.at_edge else ""),
    )


def _result(result: BudgetResult) -> Json:
    return {
        "batch_size": result.batch_size,
        "steps": result.steps,
        "examples": result.batch_size * result.steps,
        "value": result.value,
        "values": result.values,
        "trials": result.trials,
        "infeasible": result.infeasible,
        "diverged_seeds": result.diverged,
        "best": result.best,
        "at_edge": result.at_edge,
        "time_s": result.time_s,
    }
