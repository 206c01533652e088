"""CSV files of trainings to a target, one on each line."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from advisor.errors import SpecError
from advisor.records.imported import ImportedRun
from advisor.specs.csv_table import CsvTable, Faults, Line, read_csv_table
from advisor.specs.curve_columns import AMOUNTS, COLUMNS, EPOCHS
from advisor.specs.curve_line import CurveLine
from advisor.specs.sections import shown


def load_curve_file(
    path: Path, columns: Mapping[str, str], where: Mapping[str, str]
) -> tuple[ImportedRun, ...]:
    """Return the runs of a CSV file, in its order.

    ``columns`` maps names in ``COLUMNS`` to those that the file uses instead, ``where`` column names of the
    file to the values of the lines to keep. Raises :class:`SpecError` where a column is missing, else with
    all faults of the lines together.
    """
    faults = Faults()
    table = read_csv_table(path, faults)
    names = _names(path, table, columns)
    runs: list[tuple[int, ImportedRun]] = []
    for line in _kept(path, table, where):
        read = CurveLine(line, names)
        if run := read.run():
            runs.append((line.number, run))
        for sentence in read.faults:
            faults.add(line.number, sentence)
    _find_twins(runs, faults)
    faults.check(path)
    if not runs:
        raise SpecError(f"{path} has no line below its header; each run to the target is one.")
    return tuple(run for _, run in runs)


def _names(path: Path, table: CsvTable, columns: Mapping[str, str]) -> Mapping[str, str]:
    """Return the column of the file for each name that is read, of the amounts for one alone."""
    for name, column in columns.items():
        _check_mapping(path, table, name, column)
    free = set(table.columns) - set(columns.values())
    found = {name: name for name in COLUMNS if name in free} | dict(columns)
    chosen = [name for name in AMOUNTS if name in columns] or [name for name in AMOUNTS if name in found]
    _check_complete(path, table, found, chosen)
    return {name: column for name, column in found.items() if name not in AMOUNTS or name == chosen[0]}


def _check_mapping(path: Path, table: CsvTable, name: str, column: str) -> None:
    if name not in COLUMNS:
        close = get_close_matches(name.lower(), COLUMNS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"valid are {', '.join(COLUMNS)}."
        raise SpecError(f"--column {name}={column}: {name!r} is nothing that is read; {hint}")
    if column not in table.columns:
        raise SpecError(f"{path} has no column {column!r}. {_told(table)}")


def _check_complete(path: Path, table: CsvTable, found: Mapping[str, str], amounts: Sequence[str]) -> None:
    missing = [] if "batch_size" in found else ["batch_size"]
    if not amounts:
        missing.append(AMOUNTS[0])
    elif amounts[0] == EPOCHS and "examples_per_epoch" not in found:
        missing.append("examples_per_epoch")
    if not missing:
        return
    others = "" if amounts else f" (or {' or '.join(AMOUNTS[1:])})"
    raise SpecError(
        f"{path} has no column {' and no '.join(missing)}{others}. {_told(table)} Add what is "
        f"missing, or name the column that holds it: {' '.join(f'--column {name}=NAME' for name in missing)}."
    )


def _told(table: CsvTable) -> str:
    return f"Its columns are {', '.join(table.columns)}."


def _kept(path: Path, table: CsvTable, where: Mapping[str, str]) -> Sequence[Line]:
    lines: Sequence[Line] = table.lines
    for column, value in where.items():
        if column not in table.columns:
            raise SpecError(f"{path} has no column {column!r}. {_told(table)}")
        held = list(dict.fromkeys(line.cells[column] for line in lines))
        if lines and value not in held:
            there = ", ".join(map(shown, held[:10]))
            raise SpecError(f"{path} has no line to keep with {column}={value}; there are {there}.")
        lines = [line for line in lines if line.cells[column] == value]
    return lines


def _find_twins(runs: Sequence[tuple[int, ImportedRun]], faults: Faults) -> None:
    """Find lines that tell of the same run: then lines of several curves are taken for those of one."""
    seen: dict[tuple[object, ...], int] = {}
    for number, run in runs:
        key = (run.task, run.batch_size, run.learning_rate, run.seed)
        if run.seed and seen.setdefault(key, number) != number:
            faults.add(
                number,
                "the same batch size, learning rate and seed as a line before; name the column that tells "
                "the curves apart with --column task=NAME",
            )
