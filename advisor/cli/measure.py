"""``advisor measure``."""

from typing import Any

import click

from advisor import wiring
from advisor.cli import options


@click.command("measure")
@options.workload
@options.batch_sizes
@click.option("--seconds", type=click.FloatRange(min=0.01), help="Most seconds timed at each batch size.")
@options.storage
@options.output
def command(workload: str | None, storage: str, format_: str, quiet: bool, **made: Any) -> None:
    """Measure training throughput and time per step at each batch size.

    Powers of two up to what the data and the memory allow; what is recorded already is not measured again.
    """
    from advisor.reporting import csv_output, json_output, text

    choices = options.batch_size_choices(options.given(made))
    with options.progress(quiet) as progress:
        found = wiring.measure(workload, storage=storage, progress=progress, **choices)
    options.show(format_, found, text.throughput_text, json_output.measure, csv_output.measure)
