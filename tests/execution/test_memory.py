"""What is available, read from the files in which Linux tells it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.errors import SessionError
from advisor.execution import memory
from advisor.execution.memory import default_memory_limit_bytes, equal_share_bytes, limit_within_available

GIB = 2**30
MEMINFO = f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {8 * GIB // 1024} kB\n"


def limit(root: Path, files: Mapping[str, str]) -> int | None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return default_memory_limit_bytes(root / "proc", root / "cgroup")


def test_this_machine_has_some() -> None:
    here = default_memory_limit_bytes()
    assert here is not None
    assert 2**26 < here < 2**50


def test_a_machine_without_groups(tmp_path: Path) -> None:
    assert limit(tmp_path, {"proc/meminfo": MEMINFO}) == int(0.9 * 8 * GIB)


def test_the_tightest_group_counts_and_its_cache_is_free(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/pod/box\n",
        "cgroup/pod/box/memory.max": "max\n",
        "cgroup/pod/box/memory.current": f"{GIB}\n",
        "cgroup/pod/memory.max": f"{4 * GIB}\n",
        "cgroup/pod/memory.current": f"{3 * GIB}\n",
        "cgroup/pod/memory.stat": f"anon {2 * GIB}\ninactive_file {GIB}\n",
    }
    assert limit(tmp_path, files) == int(0.9 * 2 * GIB)


def test_version_one_inside_a_container_that_sees_only_its_own_group(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/\n",
        "cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
        "cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
        "cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}\n",
    }
    assert limit(tmp_path, files) == int(0.9 * 1.5 * GIB)


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "cgroup/memory.max": "1000\n",
        "cgroup/memory.current": "2000\n",
    }
    assert limit(tmp_path, files) == 0


@pytest.mark.parametrize("files", [{}, {"proc/meminfo": "MemTotal: 5 kB\n"}])
def test_a_system_that_does_not_say(tmp_path: Path, files: Mapping[str, str]) -> None:
    assert limit(tmp_path, files) is None


@pytest.mark.parametrize(
    ("asked", "share", "available", "expected"),
    [
        (5, None, 9, 5),
        (9, None, 5, 5),
        (None, None, 5, 5),
        (5, None, None, 5),
        (None, None, None, None),
        (5, 3, 9, 3),
        (2, 3, 9, 2),
        (None, 3, 2, 2),
        (None, 3, 9, 3),
    ],
)
def test_no_limit_exceeds_what_is_available(
    asked: int | None,
    share: int | None,
    available: int | None,
    expected: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, share, available, expected = (size and size * GIB for size in (asked, share, available, expected))
    monkeypatch.setattr(memory, "default_memory_limit_bytes", lambda: available)
    assert limit_within_available(asked, share) == expected


def test_sessions_that_are_open_at_once_share_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "default_memory_limit_bytes", lambda: 10 * GIB)
    assert equal_share_bytes(3) == 10 * GIB // 3
    monkeypatch.setattr(memory, "default_memory_limit_bytes", lambda: None)
    assert equal_share_bytes(3) is None


@pytest.mark.parametrize(
    ("asked", "share", "words"),
    [
        (
            8,
            None,
            "limit of 8 bytes was asked for, in which TensorFlow cannot start. Ask for at least 512 MiB",
        ),
        (1, None, "limit of 1 byte was asked for"),
        (2**20 - 1, None, "limit of 1,048,575 bytes was asked for"),
        (300 * 2**20, None, "limit of 300 MiB was asked for"),
        (None, 100 * 2**20, "may take 100 MiB of the memory that is free now, and needs at least 512 MiB"),
        (GIB, 100 * 2**20, "compare fewer options"),
    ],
)
def test_too_little_for_tensorflow_is_told(asked: int | None, share: int | None, words: str) -> None:
    with pytest.raises(SessionError, match=words):
        limit_within_available(asked, share)
