"""One run of the whole chain on the bundled digits, which the tests of this folder look at."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ADVISOR = Path(sys.executable).parent / "advisor"


@dataclass(frozen=True)
class Shell:
    """A folder in which commands are run."""

    folder: Path

    def __call__(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [ADVISOR, *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--format", "json").stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A folder in which measure, recommend and tune have been run."""
    shell = Shell(tmp_path_factory.mktemp("chain"))
    shell("measure", "--batch-sizes", "32,128,512", "--seconds", "0.2")
    shell("recommend", "--batch-sizes", "32,128,512", "--trials", "5", "--seeds", "1", "--price", "2.5")
    shell("tune", "--batch", "128", "--trials", "3", "--max-train-steps", "40")
    yield shell
