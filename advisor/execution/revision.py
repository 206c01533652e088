"""Which version of the user's own files a study ran from."""

import subprocess
from pathlib import Path

_GIT_TIMEOUT_S = 10.0


def revision(folder: Path) -> tuple[str | None, str | None]:
    """Return the git commit of ``folder`` and the diff that is not committed; None where there is none."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    return commit.strip(), _git(folder, "diff", "HEAD", "--", ".") or None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
