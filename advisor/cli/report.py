"""``advisor report``."""

import click

from advisor import wiring
from advisor.cli import options


@click.command("report")
@click.argument("name", required=False)
@options.storage
@options.output
def command(name: str | None, storage: str, format_: str, quiet: bool) -> None:
    """Show everything known of the workload called NAME, by default of the one used last."""
    from advisor.reporting import csv_output, json_output, text

    known = wiring.report(name, storage=storage)
    options.show(format_, known, text.report_text, json_output.report, csv_output.report)
