"""``advisor recommend``."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from advisor import wiring
from advisor.cli import options, without_target
from advisor.errors import SpecError

_UNTRAINED = ("minimum", "maximum", "listed")
"""The choices that matter where nothing is trained."""


def _duration(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    from advisor.specs.duration import parse_duration

    if value is None:
        return None
    try:
        return parse_duration(value)
    except SpecError as error:
        raise click.BadParameter(str(error)) from None


def _upfront_costs(
    context: click.Context, option: click.Parameter, values: Sequence[str]
) -> Mapping[int, float] | None:
    """Return amounts by batch size from texts such as 512=200."""
    pairs = [value.partition("=") for value in values]
    sizes, amounts = click.IntRange(min=1), options.FiniteNumber(min=0)
    costs = {
        int(sizes(size, option, context)): amounts.convert(amount, option, context)
        for size, _, amount in pairs
    }
    if len(costs) < len(pairs):
        raise click.BadParameter("a batch size has one upfront cost: name each once, as in 512=200.")
    return costs or None


@click.command("recommend")
@options.workload
@options.batch_sizes
@options.objective
@click.option(
    "--deadline",
    "deadline_s",
    metavar="DURATION",
    callback=_duration,
    help="Longest time to the target, such as 90s, 30min, 2h or 1d; the cheapest within it is named.",
)
@click.option(
    "--max-cost",
    type=options.FiniteNumber(min=0),
    help="Most money for one training to the target; the fastest within it is named.",
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
    "--spend-examples",
    type=click.IntRange(min=1),
    help="Examples that all trainings together may use, recorded ones included.",
)
@click.option(
    "--spend-time",
    "spend_time_s",
    metavar="DURATION",
    callback=_duration,
    help="Time that all trainings together may take, such as 30min, recorded ones included.",
)
@options.overhead
@options.prices
@click.option(
    "--upfront-cost",
    "upfront_costs",
    metavar="N=AMOUNT",
    multiple=True,
    callback=_upfront_costs,
    help="What changing to batch size N costs once; may be given for several.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of trainings and intervals (0).")
@click.option("--dry-run", is_flag=True, help="Say what may be spent, and stop before the first training.")
@click.option(
    "--no-training",
    is_flag=True,
    help="Give the rule of thumb that measured throughput alone allows: no target, no training to it.",
)
@without_target.choices
@options.storage
@options.output
def command(
    workload: str | None,
    dry_run: bool,
    no_training: bool,
    storage: str,
    format_: str,
    quiet: bool,
    **made: Any,
) -> None:
    """Find the batch size to use.

    Measures time per step, finds the steps to the target at several batch sizes with the learning rate
    retuned at each, fits the critical batch size, and recommends one batch size for time, for cost, or for
    both.
    """
    from advisor.reporting import csv_output, json_output, text

    asked = without_target.taken_from(made)
    given = options.given(made)
    choices = options.batch_size_choices(options.with_prices(given))
    if asked:
        asked.refuse_unused(given, no_training)
        asked.show(format_, dry_run, quiet, {"workload": workload, "storage": storage, **choices})
        return
    if no_training:
        _refuse_unused(given, dry_run)
        with options.progress(quiet) as progress:
            found = wiring.rule_of_thumb(workload, storage=storage, progress=progress, **choices)
        options.show(
            format_, found, text.rule_of_thumb_text, json_output.rule_of_thumb, csv_output.rule_of_thumb
        )
        return
    if dry_run:
        with options.progress(quiet) as progress:
            expected = wiring.plan(workload, storage=storage, progress=progress, **choices)
        options.show(format_, expected, text.spending_text, json_output.spending, csv_output.spending)
        return
    with options.progress(quiet) as progress:
        advice = wiring.recommend(workload, storage=storage, progress=progress, **choices)
    options.show(format_, advice, text.advice_text, json_output.recommend, csv_output.recommend)


def _refuse_unused(given: Mapping[str, Any], dry_run: bool) -> None:
    """Refuse options that would go unheard where nothing is trained."""
    parameters = {parameter.name: parameter.opts[0] for parameter in command.params}
    unused = [parameters[name] for name in given if name not in _UNTRAINED]
    unused += ["--dry-run"] if dry_run else []
    if unused:
        raise click.UsageError(
            f"--no-training looks at measured throughput alone: leave out {', '.join(unused)}."
        )
