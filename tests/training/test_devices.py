"""Memory of the process: peaks that begin anew, and what counts towards its limit."""

import json
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from advisor.records.session import MemoryUse
from advisor.training import devices

MIB = 2**20
SLACK = 48 * MIB  # what other threads of this process may take or give back meanwhile

# Takes memory in blocks until there is none, under a limit 512 MiB above what TensorFlow takes by itself.
# Then gives back the pages alone, as some allocators do, and at last the blocks.
FILLED = textwrap.dedent(
    """
    import dataclasses, json, mmap, resource
    from advisor.training import devices

    content = bytes(32 * 2**20)
    limit = devices.memory().charged_bytes + 512 * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    devices.reset_peak_memory()
    uses, blocks = {"before": devices.memory()}, []
    try:
        while True:
            blocks.append(mmap.mmap(-1, len(content), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            blocks[-1].write(content)
    except OSError:
        uses["full"] = devices.memory()
    for block in blocks:
        block.madvise(mmap.MADV_DONTNEED)
    uses["pages returned"] = devices.memory()
    for block in blocks:
        block.close()
    uses["freed"] = devices.memory()
    print(json.dumps({"limit": limit} | {when: dataclasses.asdict(use) for when, use in uses.items()}))
    """
)


def known(size: int | None) -> int:
    assert size is not None
    return size


def after_a_reset() -> tuple[int, int]:
    """Return the peaks (bytes), resident and charged, that are known right after a reset."""
    devices.reset_peak_memory()
    use = devices.memory()
    return known(use.peak_bytes), known(use.charged_bytes)


def test_a_peak_outlives_what_caused_it_until_the_next_reset():
    peak, charged = after_a_reset()
    block = np.ones(256 * MIB // 8)
    del block
    use = devices.memory()
    assert known(use.peak_bytes) > peak + 256 * MIB - SLACK
    assert known(use.charged_bytes) > charged + 256 * MIB - SLACK
    peak_again, charged_again = after_a_reset()
    assert peak_again < peak + SLACK
    assert charged_again < charged + SLACK


def test_memory_that_was_asked_for_but_never_used_is_charged_and_not_resident():
    peak, charged = after_a_reset()
    block = np.empty(256 * MIB // 8)
    use = devices.memory()
    assert block.size
    assert known(use.peak_bytes) < peak + SLACK
    assert known(use.charged_bytes) > charged + 256 * MIB - SLACK


def test_without_a_limit_none_is_told():
    if resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY:
        pytest.skip("this process has a limit")
    assert devices.memory().limit_bytes is None


def test_what_is_charged_reaches_the_limit_where_memory_runs_out():
    done = subprocess.run([sys.executable, "-c", FILLED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    limit, uses = told.pop("limit"), {when: MemoryUse(**use) for when, use in told.items()}
    assert {use.limit_bytes for use in uses.values()} == {limit}
    charged = {when: known(use.charged_bytes) for when, use in uses.items()}
    assert charged.pop("before") < limit - 400 * MIB
    assert all(limit - SLACK < size <= limit for size in charged.values()), (limit, charged)


def test_a_system_that_keeps_no_such_figures_tells_the_peak_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(devices, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(devices, "_CLEAR", tmp_path / "nowhere" / "clear_refs")
    devices.reset_peak_memory()
    use = devices.memory()
    unit = 1 if sys.platform == "darwin" else 1024
    assert use == MemoryUse(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
