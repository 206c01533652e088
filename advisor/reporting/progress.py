"""Progress for a waiting person: a live line on a terminal, a line now and then in a log."""

import atexit
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as LiveProgress

from advisor.analysis.quantities import duration, number

LOG_INTERVAL_S = 5.0


class QuietProgress:
    """Tells nothing."""

    def say(self, message: str) -> None:
        """Do nothing."""

    def advance(self, task: str, done: float, total: float | None) -> None:
        """Do nothing."""


class TerminalProgress:
    """Writes to standard error, or to ``stream``.

    On a terminal each task has a live line with its time left, which goes when the task is finished. In
    a log a task has a line every ``LOG_INTERVAL_S`` seconds at most. A context manager: on leaving it the
    live lines are gone.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(
            file=stream or sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self._lines = _LiveLines(self._console) if self._console.is_terminal else _Log(self._console, clock)

    def say(self, message: str) -> None:
        """Write one message above the live lines."""
        self._console.print(message)

    def advance(self, task: str, done: float, total: float | None) -> None:
        """Show that ``done`` of ``total`` units of ``task`` are finished."""
        self._lines.advance(task, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()


class _LiveLines:
    """One live line per unfinished task."""

    def __init__(self, console: Console) -> None:
        self._live = LiveProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("time left"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: dict[str, TaskID] = {}
        atexit.register(self._live.stop)  # a live line hides the cursor, however the program ends

    def advance(self, task: str, done: float, total: float | None) -> None:
        if task not in self._tasks:
            self._tasks[task] = self._live.add_task(task, total=total, completed=round(done))
            self._live.start()
        self._live.update(self._tasks[task], completed=done, total=total)
        if total is not None and done >= total:
            self._live.remove_task(self._tasks.pop(task))
        if not self._tasks:
            self._live.stop()

    def close(self) -> None:
        self._live.stop()


class _Log:
    """Lines without control codes, at most one per task and interval."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._started: dict[str, tuple[float, float]] = {}
        self._written: dict[str, float] = {}

    def advance(self, task: str, done: float, total: float | None) -> None:
        now = self._clock()
        if task not in self._started:
            self._started[task] = (now, done)
            self._written[task] = now
        finished = total is not None and done >= total
        if not finished and now - self._written[task] < LOG_INTERVAL_S:
            return
        self._written[task] = now
        self._console.print(self._line(task, done, total, now))
        if finished:
            del self._started[task], self._written[task]

    def close(self) -> None:
        """Nothing is live in a log."""

    def _line(self, task: str, done: float, total: float | None, now: float) -> str:
        if total is None:
            return f"{task}: {number(round(done))}"
        line = f"{task}: {number(round(done))} of {number(round(total))}"
        started, first = self._started[task]
        if done <= first or done >= total:
            return line
        return f"{line}, about {duration((now - started) * (total - done) / (done - first))} left"
