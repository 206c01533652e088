"""``advisor measure``."""

from pathlib import Path
from typing import Any

import click

from advisor import wiring
from advisor.cli import options
from advisor.errors import InconclusiveError


@click.command("measure")
@options.workload
@options.batch_sizes
@click.option("--refine", is_flag=True, default=None, help="Find the largest that fits, between powers.")
@click.option(
    "--probe",
    type=click.Choice(["longest"]),
    help="Try each batch size on the largest example first, the worst case for memory.",
)
@click.option("--seconds", type=options.FiniteNumber(min=0.01), help="Seconds timed at a batch size (0.6).")
@click.option(
    "--precision",
    type=options.FiniteNumber(min=0, max=1, min_open=True),
    help="Half-width of the interval, drift aside, at which timing ends sooner (0.02).",
)
@click.option("--again", is_flag=True, default=None, help="Measure anew what is recorded.")
@click.option(
    "--memory-limit",
    "memory_limit",
    metavar="SIZE",
    help="Memory that the training may take, such as 8GiB (what is available less a tenth).",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=options.FiniteNumber(min=1),
    help="Seconds of silence that are a hang (600).",
)
@click.option(
    "--compare",
    metavar="NAME,NAME,…",
    callback=options.names,
    help="Measure side by side with xla, mixed_precision, steps_per_call=N.",
)
@click.option("--xla", is_flag=True, default=None, help="Compile the training step with XLA.")
@click.option(
    "--mixed-precision", is_flag=True, default=None, help="Compute in bfloat16; weights stay float32."
)
@click.option(
    "--input-workers", type=click.IntRange(min=1), help="Try an input pipeline of so many producers."
)
@click.option(
    "--profile",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a profile of a few steps there, for TensorBoard and Perfetto.",
)
@options.storage
@options.output
def command(
    workload: str | None, storage: str, format_: str, quiet: bool, probe: str | None, **made: Any
) -> None:
    """Measure training throughput and time per step at each batch size, and what limits it.

    Powers of two up to what the data and the memory allow; what is recorded already is not measured again.
    """
    from advisor.reporting import csv_output, json_output, text

    choices = options.batch_size_choices(options.given({**made, "probe_longest": probe and True}))
    with options.progress(quiet) as progress:
        found = wiring.measure(workload, storage=storage, progress=progress, **choices)
    options.show(format_, found, text.throughput_text, json_output.measure, csv_output.measure)
    if found.largest_feasible_batch_size is None:
        raise InconclusiveError(
            "No batch size ran (the outcomes say why); try smaller ones with --min 1, or allow more memory."
        )
