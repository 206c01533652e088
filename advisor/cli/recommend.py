"""``advisor recommend``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import click

from advisor import wiring
from advisor.cli import options
from advisor.records.recommendation import Objective, Prices


def _objective(_context: click.Context, _option: click.Parameter, value: str | None) -> Objective | None:
    return Objective(value) if value else None


@click.command("recommend")
@options.workload
@options.batch_sizes
@click.option(
    "--objective",
    type=click.Choice([one.value for one in Objective]),
    callback=_objective,
    help="What to be best at.",
)
@click.option(
    "--tune",
    metavar="NAME,NAME,…",
    callback=options.names,
    help="Retuned at each batch size: learning_rate[,momentum].",
)
@click.option(
    "--trials",
    "trials_per_batch_size",
    type=click.IntRange(min=1),
    help="Most trials that select, at each batch size.",
)
@click.option("--seeds", type=click.IntRange(min=1), help="Fresh seeds that measure, at each batch size.")
@click.option(
    "--max-examples-per-trial",
    type=click.IntRange(min=1),
    help="Examples after which a training is given up.",
)
@click.option(
    "--overhead",
    type=options.FiniteNumber(min=0, min_open=True),
    help="Excess of examples over their minimum at the critical batch size (0.2).",
)
@click.option(
    "--price", "price_per_device_hour", type=options.FiniteNumber(min=0), help="Price of a device-hour."
)
@click.option("--currency", help="Currency of the price (USD).")
@click.option("--power", "power_w", type=options.FiniteNumber(min=0), help="Watts that one device draws.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of trainings and intervals (0).")
@click.option("--dry-run", is_flag=True, help="Say what may be spent, and stop before the first training.")
@options.storage
@options.output
def command(
    workload: str | None, dry_run: bool, storage: str, format_: str, quiet: bool, **made: Any
) -> None:
    """Find the batch size to use.

    Measures time per step, finds the steps to the target at several batch sizes with the learning rate
    retuned at each, fits the critical batch size, and recommends one batch size for time or for cost.
    """
    from advisor.reporting import csv_output, json_output, text

    choices = options.batch_size_choices(_with_prices(options.given(made)))
    if dry_run:
        with options.progress(quiet) as progress:
            expected = wiring.plan(workload, storage=storage, progress=progress, **choices)
        options.show(format_, expected, text.spending_text, json_output.spending, csv_output.spending)
        return
    with options.progress(quiet) as progress:
        advice = wiring.recommend(workload, storage=storage, progress=progress, **choices)
    options.show(format_, advice, text.advice_text, json_output.recommend, csv_output.recommend)


def _with_prices(choices: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``choices`` with the fields of Prices gathered in one."""
    names = [field.name for field in fields(Prices)]
    prices = {name: choices[name] for name in names if name in choices}
    others = {name: value for name, value in choices.items() if name not in names}
    return {**others, "prices": prices} if prices else others
