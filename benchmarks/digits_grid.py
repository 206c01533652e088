"""The critical batch size of the bundled digits by a full grid, beside the answer of `advisor recommend`.

Every batch size with every learning rate and several seeds, each trained until it reaches the target:
the exhaustive protocol that `recommend` replaces. Prints steps to target at the best learning rate of each
batch size, both fits, and what each spent. Takes about ten minutes.

    python benchmarks/digits_grid.py
"""

import math
import tempfile
from collections.abc import Iterator

import advisor
from advisor.analysis.curves import crossing, diverged, evaluation_steps
from advisor.analysis.scaling import fit_scaling
from advisor.execution.local import LocalSessions
from advisor.records.requests import WorkloadReference
from advisor.records.scaling import Crossing, Observation, ScalingFit
from advisor.records.target import Target
from advisor.records.trials import CurvePoint
from advisor.wiring import BUNDLED_WORKLOAD, SESSION_ENTRY
from advisor.workflows.ports import TrainingSession

BATCH_SIZES = [2**power for power in range(1, 11)]
LEARNING_RATES = [0.0025 * 2 ** (power / 2) for power in range(20)]
SEEDS = (100, 101, 102)
EXAMPLES_PER_TRIAL = 40 * 1397
LOOK_RATIO = 1.05


def train(
    session: TrainingSession, batch_size: int, rate: float, seed: int, target: Target
) -> list[CurvePoint]:
    """Train until the target, divergence, or the end of the examples."""
    session.reset(batch_size, {"learning_rate": rate}, seed)
    curve: list[CurvePoint] = []
    for step in evaluation_steps(max(60, EXAMPLES_PER_TRIAL // batch_size), LOOK_RATIO):
        block = session.train(step - (curve[-1].step if curve else 0))
        evaluation = session.evaluate("validation")
        curve.append(
            CurvePoint(step, evaluation.metrics, block.training_loss, block.seconds, evaluation.seconds)
        )
        if diverged(curve) or crossing(curve, target).steps is not None:
            break
    return curve


def grid(session: TrainingSession, target: Target) -> Iterator[tuple[int, float, list[Crossing], int]]:
    """Yield batch size, learning rate, the crossings of all seeds and the examples used."""
    for batch_size in BATCH_SIZES:
        for rate in LEARNING_RATES:
            curves = [train(session, batch_size, rate, seed, target) for seed in SEEDS]
            crossings = [crossing(curve, target) for curve in curves]
            yield batch_size, rate, crossings, batch_size * sum(curve[-1].step for curve in curves)


def mean_log_steps(crossings: list[Crossing]) -> float:
    """Return the mean of ln(steps); infinite where one seed did not reach the target."""
    return sum(math.log(found.steps) if found.steps else math.inf for found in crossings) / len(crossings)


def show(name: str, fit: ScalingFit, examples: int) -> None:
    """Print one fit."""
    print(f"\n{name}: {fit.outcome.name}, {examples:,} examples")
    for label in (
        "min_steps",
        "critical_batch_size",
        "half_efficiency_batch_size",
        "maximum_useful_batch_size",
    ):
        interval = getattr(fit, label)
        print(f"  {label:28} {interval.estimate:8.1f}  [{interval.low:.1f}, {interval.high:.1f}]")


def main() -> None:
    """Run both."""
    session = LocalSessions(SESSION_ENTRY, WorkloadReference(BUNDLED_WORKLOAD)).open()
    target = session.describe().target
    assert target is not None
    best: dict[int, tuple[float, list[Crossing]]] = {}
    examples = 0
    for batch_size, rate, crossings, used in grid(session, target):
        examples += used
        if batch_size not in best or mean_log_steps(crossings) < mean_log_steps(best[batch_size][1]):
            best[batch_size] = rate, crossings
    session.close()
    print(f"target: {target}\n{'batch size':>10} {'learning rate':>13} {'steps':>8}  seeds")
    for batch_size, (rate, crossings) in best.items():
        seeds = ", ".join(f"{found.steps:.1f}" if found.steps else "not reached" for found in crossings)
        print(f"{batch_size:10} {rate:13.4g} {math.exp(mean_log_steps(crossings)):8.1f}  {seeds}")
    observations = [Observation(size, found) for size, (_, crossings) in best.items() for found in crossings]
    show("full grid", fit_scaling(observations, [], BATCH_SIZES, 0.2, seed=0), examples)

    with tempfile.TemporaryDirectory() as folder:
        advice = advisor.recommend(storage=f"sqlite:///{folder}/advisor.db")
    for result in advice.results:
        print(f"{result.batch_size:10} {result.best} {result.steps_interval}")
    show("advisor recommend", advice.fit, advice.spent.examples)
    assert advice.fit.critical_batch_size is not None
    print(f"\nshare of the grid's examples: {advice.spent.examples / examples:.1%}")


if __name__ == "__main__":
    main()
