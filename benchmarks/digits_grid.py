"""The critical batch size of the bundled digits by a full grid, beside the answer of `advisor recommend`.

Every batch size with every learning rate and several seeds, each trained until it reaches the target,
then fresh seeds with the best: the exhaustive protocol that `recommend` replaces. Prints steps to target at
each batch size, both fits, and what each spent. Takes about ten minutes.

    python benchmarks/digits_grid.py
"""

import math
import tempfile
from collections.abc import Sequence

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
SEEDS = (100, 101)
FRESH_SEEDS = (200, 201, 202, 203, 204)
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


def crossings(
    session: TrainingSession, batch_size: int, rate: float, seeds: Sequence[int], target: Target
) -> tuple[list[Crossing], int]:
    """Return when each seed reached the target, and the examples that all used."""
    curves = [train(session, batch_size, rate, seed, target) for seed in seeds]
    return [crossing(curve, target) for curve in curves], batch_size * sum(curve[-1].step for curve in curves)


def mean_log_steps(found: Sequence[Crossing]) -> float:
    """Return the mean of ln(steps); infinite where one seed did not reach the target."""
    return sum(math.log(one.steps) if one.steps else math.inf for one in found) / len(found)


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
    print(f"target: {target}\n{'batch size':>10} {'learning rate':>13} {'steps':>8}  fresh seeds")
    examples, observations = 0, []
    for batch_size in BATCH_SIZES:
        tried = {rate: crossings(session, batch_size, rate, SEEDS, target) for rate in LEARNING_RATES}
        best = min(tried, key=lambda rate: mean_log_steps(tried[rate][0]))
        fresh, used = crossings(session, batch_size, best, FRESH_SEEDS, target)
        examples += used + sum(used for _, used in tried.values())
        observations += [Observation(batch_size, found) for found in fresh]
        seeds = ", ".join(f"{found.steps:.1f}" if found.steps else "not reached" for found in fresh)
        print(f"{batch_size:10} {best:13.4g} {math.exp(mean_log_steps(fresh)):8.1f}  {seeds}", flush=True)
    session.close()
    show("full grid", fit_scaling(observations, [], BATCH_SIZES, 0.2, seed=0), examples)

    with tempfile.TemporaryDirectory() as folder:
        advice = advisor.recommend(storage=f"sqlite:///{folder}/advisor.db")
    print()
    for result in advice.results:
        print(f"{result.batch_size:10} {result.best['learning_rate']:13.4g} {result.steps:8.1f}")
    show("advisor recommend", advice.fit, advice.spent.examples)
    assert advice.fit.critical_batch_size is not None
    print(f"\nshare of the grid's examples: {advice.spent.examples / examples:.1%}")


if __name__ == "__main__":
    main()
