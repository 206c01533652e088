"""``advisor recommend``."""

from collections.abc import Mapping
from typing import Any

import click

from advisor import wiring
from advisor.cli import options, without_target

_UNTRAINED = ("minimum", "maximum", "listed")
"""The choices that matter where nothing is trained."""


@click.command("recommend")
@options.workload
@options.batch_sizes
@options.objective
@options.limits
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
    callback=options.duration,
    help="Time that all trainings together may take, such as 30min, recorded ones included.",
)
@options.overhead
@options.prices
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
