"""The commit and the changes that a study ran from, as git itself tells them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from advisor.execution import revision as module
from advisor.execution.revision import LARGEST_DIFF_BYTES, revision
from tests.execution.processes import ended


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the settings of whoever runs the tests, and any repository around ``tmp_path``, out of them."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def git(folder: Path, *arguments: str, given: str | None = None) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, input=given
    ).stdout


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "a change")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a committed model, and a folder for study files in it."""
    folder = tmp_path / "repository"
    (folder / "studies").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "model.py").write_text("units = 64\n")
    (folder / "studies" / "digits.toml").write_text("trials = 8\n")
    commit(folder)
    return folder


def test_a_clean_repository_has_a_commit_and_no_diff(repository: Path) -> None:
    assert revision(repository) == (git(repository, "rev-parse", "HEAD").strip(), None)


def test_a_change_anywhere_in_the_repository_is_in_the_diff(repository: Path) -> None:
    (repository / "model.py").write_text("units = 128\n")
    git(repository, "config", "diff.relative", "true")
    git(repository, "config", "color.ui", "always")
    git(repository, "config", "diff.external", "false")
    found, diff = revision(repository / "studies")
    assert found == git(repository, "rev-parse", "HEAD").strip()
    assert diff is not None and "-units = 64\n+units = 128\n" in diff and "\x1b" not in diff


def test_the_diff_brings_the_files_back(repository: Path) -> None:
    (repository / "model.py").write_bytes("breite = 'schmal'\r\nümlaut = 1\n".encode())
    (repository / "studies" / "digits.toml").unlink()
    (repository / "new.py").write_text("layers = 2\n")
    git(repository, "add", "new.py")
    _, diff = revision(repository)
    assert diff is not None
    dirty = {path.name: path.read_bytes() for path in repository.glob("*.py")}
    git(repository, "reset", "-q", "--hard")
    (repository.parent / "kept.diff").write_bytes(diff.encode())
    git(repository, "apply", str(repository.parent / "kept.diff"))
    assert {path.name: path.read_bytes() for path in repository.glob("*.py")} == dirty
    assert not (repository / "studies" / "digits.toml").exists()


def test_what_no_text_can_hold_is_replaced(repository: Path) -> None:
    (repository / "model.py").write_bytes(b"# " + b"a" * 10_000 + b"\nx = '\xff\x00'\n")
    _, diff = revision(repository)
    assert diff is not None and "+x = '\ufffd\ufffd'" in diff


def test_a_long_diff_is_cut_and_says_so(repository: Path) -> None:
    (repository / "table.csv").write_text("")
    commit(repository)
    (repository / "table.csv").write_text("1,2,3\n" * 2_000_000)
    _, diff = revision(repository)
    assert diff is not None and diff.startswith("diff --git a/table.csv")
    assert diff.endswith("\n[cut here: the diff is longer than 1,000,000 bytes]\n")
    assert LARGEST_DIFF_BYTES < len(diff) < LARGEST_DIFF_BYTES + 100


def test_a_folder_outside_of_a_repository_has_neither(tmp_path: Path) -> None:
    assert revision(tmp_path) == (None, None)


def test_a_folder_that_is_not_there_has_neither(tmp_path: Path) -> None:
    assert revision(tmp_path / "nowhere") == (None, None)


def test_a_repository_without_a_commit_has_neither(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "model.py").write_text("units = 64\n")
    git(tmp_path, "add", "-A")
    assert revision(tmp_path) == (None, None)


def test_a_machine_without_git_has_neither(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert revision(repository) == (None, None)


def test_a_repository_that_cannot_be_read_is_not_called_clean(repository: Path) -> None:
    found = git(repository, "rev-parse", "HEAD").strip()
    (repository / ".git" / "index").write_bytes(b"no index")
    assert revision(repository) == (found, "[git could not tell what is not committed]\n")


def test_a_git_that_hangs_is_ended_with_what_it_started(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What cleans large files before they are compared hangs; it tells its process group first.
    (repository / ".gitattributes").write_text("model.py filter=slow\n")
    git(repository, "config", "filter.slow.clean", "cut -d ' ' -f 5 /proc/$$/stat > group; sleep 60; cat")
    git(repository, "config", "filter.slow.required", "true")
    (repository / "model.py").write_text("units = 128\n")
    monkeypatch.setattr(module, "_GIT_TIMEOUT_S", 0.5)
    begun = time.monotonic()
    _, diff = revision(repository)
    assert diff == "[git could not tell what is not committed]\n"
    assert time.monotonic() - begun < 30
    group = int((repository / "group").read_text())
    assert group != os.getpgrp() and ended(group)
