"""``advisor studies``."""

import click

from advisor import wiring
from advisor.cli import options


@click.command("studies")
@click.argument("name", required=False)
@options.storage
@options.output
def command(name: str | None, storage: str, format_: str, quiet: bool) -> None:
    """Show the recorded studies: the one called NAME, those of the workload called NAME, or all."""
    from advisor.reporting import csv_output, json_output, text

    known = wiring.studies(name, storage=storage)
    options.show(format_, known, text.studies_text, json_output.studies, csv_output.studies)
