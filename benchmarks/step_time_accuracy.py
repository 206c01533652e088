"""The time per step that `measure` predicts, beside the mean over a training of a minute by the same loop.

All batch sizes of all workloads are measured first and trained afterwards, so that minutes lie between the
two, as they do for a user. How much the halves of a training differ tells what the machine does by itself: no
prediction can be better. (How fast that loop is beside a hand-written one: ``step_loop.py``.)

    python benchmarks/step_time_accuracy.py [--seconds 60] [--workloads N]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import advisor
from advisor.execution.local import LocalSessions
from advisor.records.intervals import Interval
from advisor.records.requests import WorkloadReference
from advisor.wiring import BUNDLED_WORKLOAD, SESSION_ENTRY
from advisor.workflows.ports import TrainingSession

EXAMPLES = Path(__file__).parent.parent / "examples"
BATCH_SIZES = (8, 32, 128, 512)
WORKLOADS = {
    BUNDLED_WORKLOAD: BATCH_SIZES,
    str(EXAMPLES / "digits_cnn.py"): BATCH_SIZES,
    str(EXAMPLES / "character_model.py"): BATCH_SIZES,
    str(EXAMPLES / "diabetes_regression.py"): (4, 16, 64, 256),  # of 342 training examples
}
MOST_ERROR, LEAST_COVERED = 0.03, 0.85
SEED, BLOCK_S = 1, 0.5


@dataclass(frozen=True)
class Case:
    """Time per step (s) of a workload at a batch size, as predicted and as trained."""

    workload: str
    batch_size: int
    predicted_s: Interval
    halves_s: tuple[float, float]

    @property
    def trained_s(self) -> float:
        return statistics.mean(self.halves_s)

    @property
    def drift(self) -> float:
        """How much the two halves of the training differ, which is what the machine does by itself."""
        return self.halves_s[1] / self.halves_s[0] - 1

    @property
    def error(self) -> float:
        return self.predicted_s.estimate / self.trained_s - 1

    @property
    def is_covered(self) -> bool:
        return self.predicted_s.low <= self.trained_s <= self.predicted_s.high


def predict(source: str) -> dict[int, Interval]:
    """Return the time per step by batch size that `measure` finds with its defaults, nothing known before."""
    with tempfile.TemporaryDirectory() as folder:
        found = advisor.measure(
            source, batch_sizes=list(WORKLOADS[source]), storage=f"sqlite:///{folder}/advisor.db"
        )
    return {row.batch_size: row.time_per_step_s for row in found.table if row.time_per_step_s is not None}


def cases(source: str, predicted: dict[int, Interval], seconds: float) -> Iterable[Case]:
    """Train at each batch size for ``seconds``."""
    session = LocalSessions(SESSION_ENTRY, WorkloadReference(source)).open()
    name = session.describe().name
    for batch_size in WORKLOADS[source]:
        session.reset(batch_size, {}, SEED)
        yield Case(name, batch_size, predicted[batch_size], halves_s(session, seconds))
    session.close()


def halves_s(session: TrainingSession, seconds: float) -> tuple[float, float]:
    """Return the mean time per step in each half of a training, after a warm-up that finds a block size."""
    block = session.train(1)
    while block.seconds < BLOCK_S:
        block = session.train(2 * block.steps)
    return trained_s(session, block.steps, seconds / 2), trained_s(session, block.steps, seconds / 2)


def trained_s(session: TrainingSession, block_steps: int, seconds: float) -> float:
    """Return the mean time per step of a training of ``seconds``."""
    steps, taken_s = 0, 0.0
    while taken_s < seconds:
        timed = session.train(block_steps)
        steps, taken_s = steps + timed.steps, taken_s + timed.seconds
    return taken_s / steps


def show(*columns: str) -> None:
    """Print one line of the table."""
    print("{:12} {:>10} {:>32} {:>12} {:>8} {:>8} {:>8}".format(*columns), flush=True)


def columns(case: Case) -> Sequence[str]:
    """Return what the table says of ``case``."""
    predicted = case.predicted_s
    interval = f"{_ms(predicted.estimate)} ms ({_ms(predicted.low)}–{_ms(predicted.high)})"
    covered = "yes" if case.is_covered else "no"
    trained = f"{_ms(case.trained_s)} ms"
    of_machine = f"{case.drift:+.1%}"
    return case.workload, f"{case.batch_size}", interval, trained, f"{case.error:+.1%}", covered, of_machine


def judge(found: Sequence[Case]) -> bool:
    """Print the two figures beside their limits; return whether both are met."""
    error = statistics.median(abs(case.error) for case in found)
    covered = statistics.mean(case.is_covered for case in found)
    drift = statistics.median(abs(case.drift) for case in found)
    print(f"\nmedian error      {error:6.1%}   limit {MOST_ERROR:.0%}")
    print(f"interval covers   {covered:6.1%}   limit {LEAST_COVERED:.0%}   ({len(found)} cases)")
    print(f"median drift      {drift:6.1%}   between the two halves of a training, by the machine alone")
    return error <= MOST_ERROR and covered >= LEAST_COVERED


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of training at each batch size")
    parser.add_argument("--workloads", type=int, default=len(WORKLOADS), help="how many, from the first on")
    options = parser.parse_args()
    sources = list(WORKLOADS)[: options.workloads]
    predicted = {source: predict(source) for source in sources}
    show("workload", "batch size", "predicted (95 %)", "trained", "error", "covered", "drift")
    found = []
    for source in sources:
        for case in cases(source, predicted[source], options.seconds):
            show(*columns(case))
            found.append(case)
    return 0 if judge(found) else 1


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g}"


if __name__ == "__main__":
    sys.exit(main())
