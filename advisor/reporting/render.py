"""Plain text of a fixed width by rich: paragraphs, bullets, tables and command lines."""

from collections.abc import Iterable, Sequence
from io import StringIO

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from advisor.analysis.quantities import count, duration_between
from advisor.records.intervals import Interval

WIDTH = 80
"""Columns that every terminal has."""


def render(parts: Iterable[RenderableType], color: bool = False) -> str:
    """Return ``parts`` one after another as text; control codes are in it only with ``color``."""
    stream = StringIO()
    console = Console(
        file=stream,
        width=WIDTH,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def heading(title: str) -> Text:
    """Return a heading, set apart from what comes before."""
    return Text(f"\n{title}", style="bold")


def paragraph(text: str, style: str = "") -> Text:
    """Return a paragraph."""
    return Text(text, style=style)


def bullet(text: str) -> Table:
    """Return one item of a list."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("-", Text(text))
    return grid


def command(line: str) -> Text:
    """Return a command line, never broken, so that it can be copied."""
    return Text(f"    {line}", style="bold", no_wrap=True)


def verbatim(text: str) -> Text:
    """Return lines that stay as they are, however long."""
    return Text(text.rstrip("\n"), no_wrap=True)


def pairs(rows: Iterable[tuple[str, str]]) -> Padding:
    """Return names with their values, one a line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(name), Text(value))
    return Padding(grid, (0, 0, 0, 2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = ()) -> Table:
    """Return a table without its empty columns; those named in ``left`` hold words, the others numbers."""
    cells = [list(row) for row in rows]
    kept = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index in kept:
        words = columns[index] in left
        drawn.add_column(Text(columns[index]), justify="left" if words else "right", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(row[index]) for index in kept))
    return drawn


def about_count(interval: Interval | None) -> str:
    """Return ``38 (33–44)``, or nothing where it is not known."""
    if interval is None:
        return ""
    return f"{count(interval.estimate)} ({count(interval.low)}–{count(interval.high)})"


def about_duration(interval: Interval | None) -> str:
    """Return ``16.2 ms (14.1–18.6)``, or nothing where it is not known."""
    if interval is None:
        return ""
    return duration_between(interval.estimate, interval.low, interval.high)


def values(hyperparameters: Iterable[tuple[str, object]]) -> str:
    """Return ``learning_rate 0.0312, units 64``."""
    return ", ".join(f"{name} {value(given)}" for name, given in hyperparameters)


def value(given: object) -> str:
    """Return one hyperparameter or metric: numbers with three significant digits, words as they are."""
    return f"{given:.3g}" if isinstance(given, float) else str(given)


def minute(timestamp: str) -> str:
    """Return an ISO 8601 time, which is UTC, without what nobody reads."""
    return timestamp[:16].replace("T", " ") + " UTC" if timestamp else "unknown"
