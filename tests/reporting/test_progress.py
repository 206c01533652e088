"""Progress is a live line on a terminal, a line now and then in a log, and nothing when quiet."""

import os
import pty
import sys
from contextlib import suppress
from io import StringIO
from itertools import count

import pytest

from advisor.reporting.progress import LOG_INTERVAL_S, QuietProgress, TerminalProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_now_and_then() -> None:
    stream, clock = StringIO(), Clock()
    with TerminalProgress(stream, clock) as progress:
        progress.say("Measuring batch size 64.")
        for done in range(101):
            clock.now = done * 0.1 * LOG_INTERVAL_S
            progress.advance("trials", done, 100)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Measuring batch size 64."
    assert len(lines) == 1 + 10
    assert lines[1] == "trials: 10 of 100, about 45.0 s left"
    assert lines[-1] == "trials: 100 of 100"
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()


def test_a_long_message_in_a_log_stays_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = StringIO()
    TerminalProgress(stream).say("word " * 40 + "[bold]brackets[/bold] :smile:")
    assert stream.getvalue() == "word " * 40 + "[bold]brackets[/bold] :smile:\n"


def test_a_log_of_unknown_length_and_a_task_that_comes_again() -> None:
    stream, clock = StringIO(), Clock()
    progress = TerminalProgress(stream, clock)
    for clock.now, done in zip((0.0, 6.0, 12.0), count(), strict=False):
        progress.advance("steps", done * 1000, None)
    progress.advance("trials", 5, 5)
    progress.advance("trials", 1, 5)
    clock.now = 20.0
    progress.advance("trials", 2, 5)
    assert stream.getvalue().splitlines() == [
        "steps: 1,000",
        "steps: 2,000",
        "trials: 5 of 5",
        "trials: 2 of 5, about 24.0 s left",
    ]


def read_all(reader: int) -> str:
    """Return what a closed pseudo-terminal was sent; its end shows as an error on Linux."""
    chunks = []
    with suppress(OSError):
        while chunk := os.read(reader, 1 << 16):
            chunks.append(chunk)
    os.close(reader)
    return b"".join(chunks).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of Unix")
def test_a_terminal_gets_a_live_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as stream, TerminalProgress(stream) as progress:
        progress.advance("trials", 3, 20)
        progress.say("Batch size 64: 43 steps.")
        progress.advance("trials", 20, 20)
        progress.advance("trials", 1, 20)
    shown = read_all(reader)
    assert "trials" in shown and "3/20" in shown and "time left" in shown
    assert "Batch size 64: 43 steps." in shown
    hidden, shown_again = "\x1b[?25l", "\x1b[?25h"
    assert shown.rindex(shown_again) > shown.rindex(hidden)


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    progress = QuietProgress()
    progress.say("Measuring.")
    progress.advance("trials", 1, 2)
    assert capfd.readouterr() == ("", "")


def test_standard_error_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    TerminalProgress().say("Measuring.")
    assert capfd.readouterr() == ("", "Measuring.\n")
