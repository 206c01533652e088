"""Which version of the user's own files a study ran from."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Timer

LARGEST_DIFF_BYTES = 1_000_000
"""Where an uncommitted diff is cut."""

_GIT_TIMEOUT_S = 10.0
_CUT = f"\n[cut here: the diff is longer than {LARGEST_DIFF_BYTES:,} bytes]\n"
_UNREADABLE = "[git could not tell what is not committed]\n"
# Whatever the user's settings are: the whole repository, in git's own form, and without a lock on it.
_DIFF = (
    *("--no-optional-locks", "diff", "HEAD"),
    *("--no-relative", "--no-color", "--no-ext-diff", "--no-textconv"),
)


def revision(folder: Path) -> tuple[str | None, str | None]:
    """Return the git commit of ``folder`` and the diff that is not committed; None where there is none.

    The diff covers the tracked files of the whole repository. It says in words where it was cut at
    ``LARGEST_DIFF_BYTES``, and where it could not be had.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None, None
    diff = _git(folder, *_DIFF)
    return commit.strip(), _UNREADABLE if diff is None else diff or None


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, cut where it is too long; None where git fails or takes too long."""
    try:
        git = subprocess.Popen(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError:
        return None
    deadline = Timer(_GIT_TIMEOUT_S, _kill, [git])
    deadline.start()
    try:
        with git:
            assert git.stdout is not None
            printed = git.stdout.read(LARGEST_DIFF_BYTES + 1)
            if len(printed) > LARGEST_DIFF_BYTES:
                _kill(git)
                return _text(printed[:LARGEST_DIFF_BYTES]) + _CUT
    finally:
        deadline.cancel()
    return _text(printed) if git.returncode == 0 else None


def _kill(git: "subprocess.Popen[bytes]") -> None:
    """End git and what it started, such as a filter of large files."""
    with suppress(ProcessLookupError):
        os.killpg(git.pid, signal.SIGKILL)


def _text(printed: bytes) -> str:
    """Return text that every database can hold."""
    return printed.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
