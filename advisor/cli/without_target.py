"""What ``advisor recommend`` answers without a target: --compare-at and --pilot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from advisor import wiring
from advisor.cli import options
from advisor.records.recommendation import SpendingPlan

Function = TypeVar("Function", bound=Callable[..., Any])


def choices(function: Function) -> Function:
    """Add --compare-at, --pilot and --metric."""
    function = click.option(
        "--metric", metavar="NAME[:at_least]", help="Metric of --pilot and --compare-at, with its direction."
    )(function)
    function = click.option(
        "--pilot", is_flag=True, help="Propose a target from a short tuned run, and stop."
    )(function)
    return click.option(
        "--compare-at",
        metavar="steps=N|examples=N",
        help="Compare results within a budget; no target needed.",
    )(function)


NEED_A_TARGET = (
    "objective",
    "deadline_s",
    "max_cost",
    "overhead",
    "upfront_costs",
    "spend_examples",
    "spend_time_s",
)


def taken_from(made: dict[str, Any]) -> "WithoutTarget":
    """Take the choices of this module out of ``made``."""
    return WithoutTarget(made.pop("compare_at"), made.pop("pilot"), made.pop("metric"))


@dataclass(frozen=True)
class WithoutTarget:
    """What was asked for of these."""

    compare_at: str | None
    pilot: bool
    metric: str | None

    def __post_init__(self) -> None:
        if self.compare_at and self.pilot:
            raise click.UsageError("--compare-at and --pilot are two questions: ask one at a time.")
        if self.metric and not self:
            raise click.UsageError("--metric goes with --pilot or --compare-at; recommend has its target.")

    def __bool__(self) -> bool:
        return bool(self.compare_at) or self.pilot

    def refuse_unused(self, given: Mapping[str, Any], no_training: bool) -> None:
        """Refuse options that would go unheard."""
        parameters = click.get_current_context().command.params
        spelled = {parameter.name: parameter.opts[0] for parameter in parameters}
        unused = [spelled[name] for name in given if name in NEED_A_TARGET]
        unused += ["--no-training"] if no_training else []
        if unused:
            name = "--compare-at" if self.compare_at else "--pilot"
            raise click.UsageError(f"{name} trains to no target: leave out {', '.join(unused)}.")

    def show(self, format_: str, dry_run: bool, quiet: bool, arguments: Mapping[str, Any]) -> None:
        """Answer and print; ``arguments`` are those of the use case but what was asked for here."""
        given = {
            **arguments,
            "metric": self.metric,
            **({"budget": self.compare_at} if self.compare_at else {}),
        }
        if dry_run:
            _show_plan(
                wiring.plan_comparison if self.compare_at else wiring.plan_pilot, format_, quiet, given
            )
        elif self.compare_at:
            _show_comparison(format_, quiet, given)
        else:
            _show_pilot(format_, quiet, given)


def _show_plan(ask: Callable[..., SpendingPlan], format_: str, quiet: bool, given: Mapping[str, Any]) -> None:
    from advisor.reporting import csv_output, json_output, text

    with options.progress(quiet) as progress:
        plan = ask(progress=progress, **given)
    options.show(format_, plan, text.spending_text, json_output.spending, csv_output.spending)


def _show_comparison(format_: str, quiet: bool, given: Mapping[str, Any]) -> None:
    from advisor.reporting.budget_comparison import as_csv, as_json, as_text

    with options.progress(quiet) as progress:
        found = wiring.compare_at(progress=progress, **given)
    options.show(format_, found, as_text, as_json, as_csv)


def _show_pilot(format_: str, quiet: bool, given: Mapping[str, Any]) -> None:
    from advisor.reporting.pilot import as_csv, as_json, as_text

    with options.progress(quiet) as progress:
        found = wiring.pilot(progress=progress, **given)
    options.show(format_, found, as_text, as_json, as_csv)
