"""The largest batch size that `measure` finds under 2 GB, beside the one that exhaustive trials find.

The model's larger batches need 10 GB: ten elementwise layers over 65,536 numbers, 2.6 MB of activations for
each example. Each trial is a fresh process under the same limit. Meanwhile the memory that the machine has
left is watched.

    python benchmarks/memory_frontier.py
"""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import cloudpickle
import keras
import numpy as np
import psutil

import advisor
from advisor import Workload
from advisor.errors import OutOfMemoryError
from advisor.execution.local import LocalSessions
from advisor.records.requests import WorkloadReference
from advisor.reporting.text import throughput_text
from advisor.wiring import SESSION_ENTRY

LIMIT_BYTES = 2 * 10**9
MARGIN_SHARE = 0.1
WIDTH, LAYERS, EXAMPLES = 65_536, 10, 4096
TRIED = (*range(64, 512, 64), *range(512, 1025, 128), 2048, 4096)
WATCH_S = 0.05


def build_model(hp):
    layers = [keras.layers.Activation("tanh") for _ in range(LAYERS)]
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(WIDTH), *layers, keras.layers.Dense(1)])


def load_data():
    x = np.random.default_rng(0).normal(size=(EXAMPLES, 8)).astype("float32")
    return {"train": (x, x[:, :1]), "validation": (x[:16], x[:16, :1])}


WORKLOAD = Workload("memory", build_model, load_data, "mse", optimizer="sgd")


@contextmanager
def least_available() -> Iterator[list[int]]:
    """Give a list whose one item is the least memory (bytes) that was available meanwhile."""
    least, ended = [psutil.virtual_memory().available], threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_S):
            least[0] = min(least[0], psutil.virtual_memory().available)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield least
    finally:
        ended.set()
        thread.join()


def fits(batch_size: int) -> bool:
    """Return whether two steps at ``batch_size`` run in a fresh process under the limit."""
    reference = WorkloadReference(WORKLOAD.name, pickled=cloudpickle.dumps(WORKLOAD))
    session = LocalSessions(SESSION_ENTRY, reference, LIMIT_BYTES).open()
    try:
        session.reset(batch_size, {}, 0)
        session.train(2)
    except OutOfMemoryError:
        return False
    finally:
        session.close()
    return True


def main() -> int:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    margin = MARGIN_SHARE * psutil.virtual_memory().available
    with tempfile.TemporaryDirectory() as folder, least_available() as least:
        url = f"sqlite:///{folder}/advisor.db"
        powers = advisor.measure(WORKLOAD, storage=url, memory_limit=LIMIT_BYTES)
        refined = advisor.measure(WORKLOAD, storage=url, memory_limit=LIMIT_BYTES, refine=True)
    print(throughput_text(refined))
    exhaustive = max(size for size in TRIED if fits(size))
    found = (powers.largest_feasible_batch_size or 0, refined.largest_feasible_batch_size or 0)
    print(f"largest that fits: exhaustive {exhaustive:,}, powers of two {found[0]:,}, refined {found[1]:,}")
    print(f"least memory available {least[0] / 1e9:.1f} GB   margin {margin / 1e9:.1f} GB")
    right = all(exhaustive / 2 <= size <= 2 * exhaustive for size in found)
    return 0 if right and least[0] >= margin else 1


if __name__ == "__main__":
    sys.exit(main())
