"""``advisor import``."""

from pathlib import Path
from typing import Any

import click

from advisor import wiring
from advisor.cli import options
from advisor.errors import InconclusiveError
from advisor.records.imported import ImportedCurve
from advisor.records.scaling import FitOutcome


def _pairs(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [tuple(part.strip() for part in one.partition("=")) for one in given]
    for text, (name, equals, _) in zip(given, pairs, strict=True):
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not two names with an equals sign between them.")
    return {name: other for name, _, other in pairs}


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--column",
    "columns",
    multiple=True,
    callback=_pairs,
    metavar="NAME=COLUMN",
    help="The file calls NAME, one of those above, COLUMN. Repeatable.",
)
@click.option(
    "--where",
    multiple=True,
    callback=_pairs,
    metavar="COLUMN=VALUE",
    help="Only the lines of the file with this value. Repeatable.",
)
@options.objective
@options.limits
@options.overhead
@options.prices
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the intervals (0).")
@options.output
def command(
    file: Path,
    columns: dict[str, str],
    where: dict[str, str],
    format_: str,
    quiet: bool,
    **made: Any,
) -> None:
    """Fit the curve of steps to target that another program measured.

    FILE is a CSV file with one training to the target on each line, under a header that names the columns.
    Where it has times per step, one batch size is recommended. Nothing is stored. It reads

    \b
    batch_size          examples per optimizer step
    steps_to_target     optimizer steps to the target; or instead of it
    examples_to_target    examples to the target, or
    epochs_to_target      epochs, with examples_per_epoch beside it
    reached             false: not reached within these steps (optional)
    max_train_steps     the steps after which a run was given up: a line that
                          leaves steps_to_target empty did not reach the
                          target within them (optional)
    evaluated_every     steps between evaluations: the target was reached
                          somewhere in the last of them (optional)
    learning_rate       where a batch size has several, the best is taken by
                          the geometric mean of its steps (optional)
    seed                tells repeated runs apart (optional)
    time_per_step_s     seconds per step, for a recommendation (optional)
    task                tells several curves apart (optional)

    Other columns, empty lines and lines that begin with # are passed over.
    """
    from advisor.reporting import imported

    choices = options.with_prices(options.given(made))
    with options.progress(quiet) as progress:
        found = wiring.import_curve(file, columns=columns, where=where, progress=progress, **choices)
    options.show(format_, found, imported.text, imported.as_json, imported.as_csv)
    if all(curve.advice.fit.outcome is FitOutcome.INSUFFICIENT for curve in found.curves):
        raise InconclusiveError(f"No curve can be fitted. {found.curves[0].missing}")
    unmet = [_unmet(curve) for curve in found.curves]
    if {"deadline_s", "max_cost"} & choices.keys() and any(unmet):
        raise InconclusiveError(" ".join(sentence for sentence in unmet if sentence))


def _unmet(curve: ImportedCurve) -> str:
    """Return why no batch size is within the limits, empty where one is."""
    recommendation = curve.advice.recommendation
    sentence = recommendation.unmet if recommendation else curve.missing
    return f"{curve.task}: {sentence}" if curve.task and sentence else sentence or ""
