"""One line of a file of trainings to a target."""

from collections.abc import Mapping

from advisor.records.imported import ImportedRun
from advisor.records.scaling import Crossing
from advisor.specs.choices import Bounds
from advisor.specs.csv_table import Line
from advisor.specs.curve_columns import AMOUNTS, EPOCHS, EXAMPLES, STEPS
from advisor.specs.sections import shown

_SIZE = Bounds(1, 10**12, whole=True)
_POSITIVE = Bounds(0, 10**15, above=True)
_TRUTH = dict.fromkeys(("true", "yes", "1"), True) | dict.fromkeys(("false", "no", "0"), False)
_EPOCHS = ("epoch", "epochs")


class CurveLine:
    """Reads a line; ``names`` maps what is read to the columns of the file, one of ``AMOUNTS`` among it.

    ``faults`` are sentences about what is wrong with the line, once :meth:`run` was called.
    """

    def __init__(self, line: Line, names: Mapping[str, str]) -> None:
        self._cells, self._names = line.cells, names
        self._amount = next(name for name in AMOUNTS if name in names)
        self._unread = {name: cell for name, cell in line.cells.items() if name not in names.values()}
        self.faults: list[str] = []

    def run(self) -> ImportedRun | None:
        """Return the run that the line tells of, None where it has faults."""
        batch_size = self._required("batch_size", _SIZE)
        crossing = self._crossing(batch_size)
        rate, time_s = (self._number(name, _POSITIVE) for name in ("learning_rate", "time_per_step_s"))
        if batch_size is None or crossing is None or self.faults:
            return None
        return ImportedRun(
            batch_size=int(batch_size),
            crossing=crossing,
            task=self._cell("task"),
            learning_rate=rate,
            seed=self._cell("seed"),
            time_per_step_s=time_s,
            unread=self._unread,
        )

    def _crossing(self, batch_size: float | None) -> Crossing | None:
        """Return when the run met the target; an empty amount is a run that did not."""
        reached = self._truth("reached")
        limit, every = (self._number(name, _POSITIVE) for name in ("max_train_steps", "evaluated_every"))
        steps = self._steps(batch_size)
        if not self._cell(self._amount):
            return self._without_amount(reached, limit)
        if steps is None:
            return None
        if reached is False:
            return Crossing(None, steps, None)
        low = max(steps - (every or 0.0), 0.0)
        return Crossing((low + steps) / 2, low, steps)

    def _without_amount(self, reached: bool | None, limit: float | None) -> Crossing | None:
        if reached:
            self._fault(self._amount, "empty, although the target was reached")
            return None
        if limit is None:
            self._fault(
                self._amount,
                "empty; where the target was not reached, say in a column max_train_steps after how many "
                "steps the run was given up, or leave the line out",
            )
            return None
        return Crossing(None, float(limit), None)

    def _steps(self, batch_size: float | None) -> float | None:
        amount = self._number(self._amount, _POSITIVE)
        per_epoch = self._required("examples_per_epoch", _SIZE) if self._amount == EPOCHS else 1
        if self._counts_epochs_only() or amount is None or batch_size is None or per_epoch is None:
            return None
        steps = float(amount if self._amount == STEPS else amount * per_epoch / batch_size)
        if self._amount == EXAMPLES and steps < 1:
            self._fault(EXAMPLES, f"less than one batch of batch_size; epochs belong in a column {EPOCHS}")
        return steps

    def _counts_epochs_only(self) -> bool:
        """Return whether another cell says that the line counts epochs, where examples or steps are read."""
        said = [column for column, cell in self._unread.items() if cell.lower() in _EPOCHS]
        if not said or self._amount == EPOCHS:
            return False
        self._fault(
            self._amount,
            f"counts epochs, says {said[0]}; leave such lines out with --where {said[0]}=OTHER, or name the "
            f"column with --column {EPOCHS}=NAME beside a column examples_per_epoch",
        )
        return True

    def _truth(self, name: str) -> bool | None:
        cell = self._cell(name)
        if cell and cell.lower() not in _TRUTH:
            self._fault(name, f"got {shown(cell)}; valid is true or false")
        return _TRUTH.get(cell.lower())

    def _required(self, name: str, bounds: Bounds) -> float | None:
        if not self._cell(name):
            self._fault(name, f"empty; valid is {bounds}")
        return self._number(name, bounds)

    def _number(self, name: str, bounds: Bounds) -> float | None:
        """Return the number in a cell, None where it is empty or no such number."""
        cell = self._cell(name)
        value = _parsed(cell)
        if cell and not bounds.hold(value):
            self._fault(name, f"got {shown(cell)}; valid is {bounds}")
            return None
        return value

    def _cell(self, name: str) -> str:
        return self._cells[self._names[name]] if name in self._names else ""

    def _fault(self, name: str, sentence: str) -> None:
        self.faults.append(f"{self._names[name]}: {sentence}")


def _parsed(cell: str) -> float | None:
    """Return the number that ``cell`` says, a whole one as an int; None where it says none."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number
