"""``advisor tune``."""

from pathlib import Path
from typing import Any

import click

from advisor import wiring
from advisor.cli import options
from advisor.errors import InconclusiveError


@click.command("tune")
@options.workload
@click.option("--batch", "batch_size", type=int, required=True, help="Batch size (global).")
@click.option("--trials", type=click.IntRange(min=1), help="Trials in all, with those of earlier runs (20).")
@click.option(
    "--max-train-steps",
    type=click.IntRange(min=1),
    help="Steps of every trial [default: three times the known steps to target, else 20 epochs].",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of trainings and search (0).")
@click.option("--artifacts", type=click.Path(path_type=Path), help="Folder of the checkpoints.")
@options.storage
@options.output
def command(
    workload: str | None, storage: str, format_: str, quiet: bool, batch_size: int, **made: Any
) -> None:
    """Tune learning rate, momentum, regularization and the workload's own hyperparameters at one batch size.

    The first half of the trials fills the search space evenly, the second half exploits what they found.
    The same command again goes on where the last one stopped.
    """
    from advisor.reporting import csv_output, json_output, text

    choices = options.given(made)
    with options.progress(quiet) as progress:
        result = wiring.tune(workload, batch_size=batch_size, storage=storage, progress=progress, **choices)
    options.show(format_, result, text.tuning_text, json_output.tune, csv_output.tune)
    if result.best is None:
        raise InconclusiveError(
            f"No trial at batch size {batch_size:,} gave a finite result; narrow the search space in a study "
            "file, the learning rate first."
        )
