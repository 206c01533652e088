"""One run of the whole chain on the bundled digits, which the tests of this folder look at."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def dashboard(folder: Path) -> Iterator[Callable[[str], str]]:
    """Serve the dashboard over what is recorded in ``folder``; gives a function that fetches a path."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [ADVISOR, "dashboard", "--port", str(port)], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[0].rstrip("/")
            assert address == f"http://127.0.0.1:{port}"
            yield lambda path: _fetch(address + path)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        assert server.returncode == 0


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())
