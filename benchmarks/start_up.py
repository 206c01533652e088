"""How soon things start, and what the advisor's own process takes: each figure beside its limit.

python benchmarks/start_up.py
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from advisor.execution.local import LocalSessions
from advisor.records.requests import WorkloadReference
from advisor.wiring import BUNDLED_WORKLOAD, SESSION_ENTRY

ADVISOR = str(Path(sys.executable).parent / "advisor")
REPEATS = 11


def seconds(action: Callable[[], object]) -> float:
    """Return how long ``action`` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show(name: str, value: float, limit: float, unit: str) -> None:
    """Print a figure beside its limit."""
    print(f"{name:58} {value:8.3f} {unit:3} limit {limit:g} {unit}", flush=True)


def help_s() -> float:
    """Return the median time of ``advisor --help``."""
    times = [
        seconds(lambda: subprocess.run([ADVISOR, "--help"], capture_output=True, check=True))
        for _ in range(REPEATS)
    ]
    return statistics.median(times)


def second_reset_s() -> float:
    """Return the median time until another trial at a known batch size can take its first step."""
    session = LocalSessions(SESSION_ENTRY, WorkloadReference(BUNDLED_WORKLOAD)).open()
    session.reset(64, {"learning_rate": 0.1, "momentum": 0.9}, 0)
    session.train(10)
    rates = [0.01 * (repeat + 1) for repeat in range(REPEATS)]
    times = [
        seconds(lambda rate=rate: session.reset(64, {"learning_rate": rate, "momentum": 0.8}, 1))
        for rate in rates
    ]
    session.close()
    return statistics.median(times)


def main_command() -> tuple[float, float]:
    """Return the wall time (s) of ``advisor recommend`` in an empty folder, and the advisor's own peak (MB).

    The training process is a child of the advisor; ``ru_maxrss`` of our children is the largest single
    process, so the advisor's own is read from what it says of itself at exit.
    """
    program = (
        "import resource, sys\n"
        "from advisor.cli import run\n"
        "status = run(['recommend', '--quiet', '--format', 'json'])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)\n"
        "sys.exit(status)"
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
        )
        return time.perf_counter() - start, float(done.stderr.split()[-1])


def main() -> None:
    """Print all figures."""
    show("advisor --help", help_s(), 0.3, "s")
    show("a second trial at the same batch size starts after", second_reset_s(), 0.1, "s")
    wall_s, peak_mb = main_command()
    show("advisor recommend in an empty folder", wall_s, 90, "s")
    show("the advisor's own process at its peak", peak_mb, 200, "MB")
    print(f"(the training process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB)")


if __name__ == "__main__":
    main()
