"""Tables in CSV files: cells by line and column, and all faults of a file in one message."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from advisor.errors import SpecError

COMMENT = "#"
_DELIMITERS = ",;\t"
_SHOWN_FAULTS = 10
_SHOWN_LINES = 3


@dataclass(frozen=True)
class Line:
    """A line below the header: its number in the file, from 1, and its cells by column."""

    number: int
    cells: Mapping[str, str]


@dataclass
class Faults:
    """What is wrong with the lines of a file; those that share a fault are told together."""

    lines: dict[str, list[int]] = field(default_factory=dict)

    def add(self, line: int, sentence: str) -> None:
        """Remember what is wrong with ``line``."""
        self.lines.setdefault(sentence, []).append(line)

    def check(self, path: Path) -> None:
        """Raise SpecError with the faults, if there are any: the first few in words, the others counted."""
        count = sum(map(len, self.lines.values()))
        if not count:
            return
        shown = sorted(self.lines.items(), key=lambda fault: fault[1][0])[:_SHOWN_FAULTS]
        told = [f"  {_places(lines)}: {sentence}" for sentence, lines in shown]
        if rest := count - sum(len(lines) for _, lines in shown):
            told.append(f"  and {rest:,} more")
        faults = "1 fault" if count == 1 else f"{count:,} faults"
        raise SpecError(f"{path} has {faults}:\n" + "\n".join(told))


@dataclass(frozen=True)
class CsvTable:
    """The named columns and the lines of a file."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]


def read_csv_table(path: Path, faults: Faults) -> CsvTable:
    """Return the table of a CSV file whose first line names the columns.

    Commas, semicolons or tabs separate the cells, whichever the header has most of. Empty lines and lines
    that begin with ``#`` are skipped. A line with too few or too many cells is added to ``faults``. Raises
    :class:`SpecError` where there is no such table.
    """
    records = _records(path, _text(path))
    _, columns = next(records, (0, ()))
    named = [column for column in columns if column]
    if not named:
        raise SpecError(f"{path} is empty; its first line has to name the columns.")
    if twice := sorted({column for column in named if named.count(column) > 1}):
        raise SpecError(f"{path} has more than one column {', '.join(twice)}; give each its own name.")
    return CsvTable(tuple(named), tuple(_lines(records, columns, faults)))


def _lines(
    records: Iterator[tuple[int, Sequence[str]]], columns: Sequence[str], faults: Faults
) -> Iterator[Line]:
    for number, cells in records:
        if len(cells) == len(columns):
            yield Line(number, dict(zip(columns, cells, strict=True)))
        else:
            faults.add(number, f"has {len(cells)} cells; the header has {len(columns)}")


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise SpecError(f"There is no file {path}. Name a CSV file that exists.") from None
    except OSError as error:
        reason = error.strerror
        raise SpecError(f"{path} cannot be read: {reason}. Name a CSV file that is readable.") from error
    except ValueError as error:
        raise SpecError(f"{path} is not text in UTF-8; save it as CSV in that encoding.") from error


def _records(path: Path, text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the cells of each line that has any, with the number of the line."""
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for number, line in enumerate(StringIO(text, newline=""), 1):  # noqa: B007
            if line.strip() and not line.startswith(COMMENT):
                yield line

    header = next(lines(), "")
    reader = csv.reader(lines(), delimiter=max(_DELIMITERS, key=header.count), strict=True)
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                yield number, cells
    except csv.Error as error:
        raise SpecError(f"{path} is not valid CSV at line {number}: {error}.") from error


def _places(lines: Sequence[int]) -> str:
    shown = [str(line) for line in lines[:_SHOWN_LINES]]
    if rest := len(lines) - len(shown):
        shown.append(f"{rest:,} more")
    *others, last = shown
    return f"lines {', '.join(others)} and {last}" if others else f"line {last}"
