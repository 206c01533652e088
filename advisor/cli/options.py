"""What several commands take alike."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import StrEnum
from typing import Any, TextIO, TypeVar

import click

from advisor import wiring
from advisor.errors import SpecError
from advisor.records.recommendation import Objective, Prices
from advisor.workflows.ports import Progress

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class FiniteNumber(click.FloatRange):
    """A number within bounds, without NaN and infinity, which click lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number that ``value`` says."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def workload(function: Function) -> Function:
    """Add the argument that names a workload."""
    return click.argument("workload", required=False)(function)


def storage(function: Function) -> Function:
    """Add --storage."""
    return click.option(
        "--storage",
        default=wiring.DEFAULT_STORAGE,
        show_default=True,
        metavar="URL",
        help="Database of everything recorded: SQLite or PostgreSQL.",
    )(function)


def output(function: Function) -> Function:
    """Add --format and --quiet."""
    function = click.option("--quiet", is_flag=True, help="Say nothing while working.")(function)
    return click.option(
        "--format",
        "format_",
        type=click.Choice([one.value for one in Format]),
        default="table",
        show_default=True,
        help="How the result is printed.",
    )(function)


def batch_sizes(function: Function) -> Function:
    """Add --min, --max and --batch-sizes."""
    positive = click.IntRange(min=1)
    function = click.option("--min", "minimum", type=positive, help="Smallest batch size.")(function)
    function = click.option("--max", "maximum", type=positive, help="Largest batch size.")(function)
    return click.option(
        "--batch-sizes",
        "listed",
        metavar="N,N,…",
        callback=_whole_numbers,
        help="Exactly these, such as 64,256.",
    )(function)


def objective(function: Function) -> Function:
    """Add --objective."""
    return click.option(
        "--objective",
        type=click.Choice([one.value for one in Objective]),
        callback=lambda _context, _option, value: Objective(value) if value else None,
        help="What to be best at; balanced: least product of time and cost (time).",
    )(function)


def limits(function: Function) -> Function:
    """Add --deadline and --max-cost."""
    function = click.option(
        "--max-cost",
        type=FiniteNumber(min=0),
        help="Most money for one training to the target; the fastest within it is named.",
    )(function)
    return click.option(
        "--deadline",
        "deadline_s",
        metavar="DURATION",
        callback=duration,
        help="Longest time to the target, such as 90s, 30min, 2h or 1d; the cheapest within it is named.",
    )(function)


def duration(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of a text such as 30min."""
    from advisor.specs.duration import parse_duration

    if value is None:
        return None
    try:
        return parse_duration(value)
    except SpecError as error:
        raise click.BadParameter(str(error)) from None


def overhead(function: Function) -> Function:
    """Add --overhead."""
    return click.option(
        "--overhead",
        type=FiniteNumber(min=0, min_open=True, max=100),
        help="Excess of examples over their minimum at the critical batch size (0.2).",
    )(function)


def prices(function: Function) -> Function:
    """Add --price, --currency, --power and --upfront-cost."""
    amount = FiniteNumber(min=0)
    function = click.option(
        "--upfront-cost",
        "upfront_costs",
        metavar="N=AMOUNT",
        multiple=True,
        callback=_upfront_costs,
        help="What changing to batch size N costs once; may be given for several.",
    )(function)
    function = click.option("--power", "power_w", type=amount, help="Watts that one device draws.")(function)
    function = click.option("--currency", help="Currency of the price (USD).")(function)
    return click.option("--price", "price_per_device_hour", type=amount, help="Price of a device-hour.")(
        function
    )


def _upfront_costs(
    context: click.Context, option: click.Parameter, values: Sequence[str]
) -> Mapping[int, float] | None:
    """Return amounts by batch size from texts such as 512=200."""
    pairs = [value.partition("=") for value in values]
    sizes, amounts = click.IntRange(min=1), FiniteNumber(min=0)
    try:
        costs = {
            int(sizes(size, option, context)): amounts.convert(amount, option, context)
            for size, _, amount in pairs
        }
    except click.BadParameter as error:
        raise click.BadParameter(
            f"{error.message.rstrip('.')}; valid is a batch size with its amount, as in 512=200."
        ) from None
    if len(costs) < len(pairs):
        raise click.BadParameter("a batch size has one upfront cost: name each once, as in 512=200.")
    return costs or None


def with_prices(choices: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``choices`` with the fields of Prices gathered in one."""
    names = [field.name for field in fields(Prices)]
    made = {name: choices[name] for name in names if name in choices}
    others = {name: value for name, value in choices.items() if name not in names}
    return {**others, "prices": made} if made else others


def names(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Return the names between commas, without spaces around them."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) or None if value else None


def _whole_numbers(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        numbers = tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 64,256.") from None
    if min(numbers) < 1:
        raise click.BadParameter(f"{min(numbers)} is not a batch size: name whole numbers from 1.")
    return numbers


def given(choices: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choices that the user made."""
    return {name: value for name, value in choices.items() if value is not None}


def batch_size_choices(choices: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``choices`` with --min, --max and --batch-sizes gathered in one field."""
    names = ("minimum", "maximum", "listed")
    made = {name: choices[name] for name in names if name in choices}
    others = {name: value for name, value in choices.items() if name not in names}
    if "listed" in made and len(made) > 1:
        raise click.BadParameter("--batch-sizes names them all; leave out --min and --max.")
    if "maximum" in made and made["maximum"] < made.get("minimum", 1):
        raise click.BadParameter(f"--min {made['minimum']} is above --max {made['maximum']}.")
    return {**others, "batch_sizes": made} if made else others


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Give what tells a waiting person on standard error, and take its live line away at the end."""
    from advisor.reporting.progress import QuietProgress, TerminalProgress

    if quiet:
        yield QuietProgress()
        return
    with TerminalProgress() as shown:
        yield shown


def show(
    format_: str,
    result: Result,
    as_text: Callable[[Result, bool], str],
    as_json: Callable[[Result], Any],
    as_csv: Callable[[Result], str],
) -> None:
    """Print ``result`` on standard output in the chosen format; in colour on a terminal that wants it."""
    import json
    import os
    import sys

    if format_ == Format.JSON:
        text = json.dumps(as_json(result), indent=2, allow_nan=False)
    elif format_ == Format.CSV:
        text = as_csv(result)
    else:
        text = as_text(result, _is_terminal(sys.stdout) and "NO_COLOR" not in os.environ)
    click.echo(text.rstrip("\n"))


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()  # It is None where the caller has closed it.
