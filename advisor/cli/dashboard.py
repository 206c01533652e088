"""``advisor dashboard``."""

import click

from advisor import wiring
from advisor.cli import options


@click.command("dashboard")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="Port on 127.0.0.1."
)
@options.storage
def command(port: int, storage: str) -> None:
    """Serve the Optuna dashboard over everything recorded, on this machine alone; Ctrl-C ends it."""
    wiring.dashboard(storage, port, lambda address: click.echo(f"{address} (Ctrl-C ends it)", err=True))
