"""What `recommend` spends and answers, beside a grid of ten batch sizes and ten learning rates.

The grid trains each pair once, up to the target or to what `recommend` allows a training, and is charged
with the lossless cap: a training ends once it has taken as many steps as the best one at its batch size. What
that costs depends on the order of the learning rates; the mean over random orders counts. The steps behind
the grid's own fit come from five fresh seeds with the best learning rate of each batch size, which are not
charged.

    pip install -e '.[benchmark]'
    python benchmarks/cost_of_the_answer.py [--workloads digits,digits_cnn,mnist]

Trained grids are kept in `--grids FOLDER` and used again; each takes about ten minutes.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import advisor
from advisor.analysis.curves import crossing, diverged, evaluation_steps
from advisor.analysis.scaling import fit_scaling
from advisor.execution.local import LocalSessions
from advisor.records.recommendation import Advice
from advisor.records.requests import WorkloadReference
from advisor.records.scaling import Crossing, Observation, ScalingFit
from advisor.records.target import Target
from advisor.records.trials import CurvePoint
from advisor.wiring import BUNDLED_WORKLOAD, SESSION_ENTRY
from advisor.workflows.exploration import EPOCHS_PER_TRIAL
from advisor.workflows.ports import TrainingSession
from advisor.workflows.steps_to_target import LOOK_RATIO

HERE = Path(__file__).parent
SEED, FRESH_SEEDS = 100, (200, 201, 202, 203, 204)
ADVISOR_SEEDS = (0, 1000, 2000, 3000, 4000)
ORDERS = 2000
MOST_OFF, MOST_SLOWER = 1.25, 0.05


@dataclass(frozen=True)
class Question:
    """A workload, the two sides of the grid, and the most that the answer may cost of it."""

    source: str
    batch_sizes: Sequence[int]
    learning_rates: Sequence[float]
    most_cost: float


QUESTIONS = {
    "digits": Question(
        BUNDLED_WORKLOAD, [2**k for k in range(1, 11)], [0.0025 * 2**k for k in range(10)], 0.15
    ),
    "digits_cnn": Question(
        str(HERE.parent / "examples" / "digits_cnn.py"),
        [2**k for k in range(1, 11)],
        [0.001 * 2**k for k in range(10)],
        0.05,
    ),
    "mnist": Question(
        str(HERE / "mnist_5000.py"), [2**k for k in range(2, 12)], [0.001 * 2**k for k in range(10)], 0.05
    ),
}


@dataclass(frozen=True)
class Grid:
    """Steps to target (None: not reached) by batch size and learning rate, and those of fresh seeds."""

    question: Question
    limits: Mapping[int, int]
    cells: Mapping[int, Sequence[float | None]]
    fresh: Mapping[int, Sequence[float | None]]

    @property
    def fit(self) -> ScalingFit:
        seen = [
            Observation(
                size,
                Crossing(steps, steps / LOOK_RATIO, steps)
                if steps
                else Crossing(None, float(self.limits[size]), None),
            )
            for size, found in self.fresh.items()
            for steps in found
            if any(self.cells[size])
        ]
        return fit_scaling(seen, [], self.question.batch_sizes, 0.2, seed=0)

    def steps(self, batch_size: int) -> float:
        """Return the median of steps to target over fresh seeds."""
        return statistics.median(one or math.inf for one in self.fresh[batch_size])

    def spent(self, random: np.random.Generator) -> tuple[float, float]:
        """Return the examples and evaluations of the grid with the lossless cap, the mean over orders."""
        examples = evaluations = 0.0
        for size, limit in self.limits.items():
            steps = _capped([one or limit for one in self.cells[size]], random)
            examples += size * float(steps.sum(axis=1).mean())
            looks = np.array(list(evaluation_steps(limit, LOOK_RATIO)))
            evaluations += float((np.searchsorted(looks, steps) + 1).sum(axis=1).mean())
        return examples, evaluations


def _capped(steps: Sequence[float], random: np.random.Generator) -> np.ndarray:
    """Return the steps that each training takes in many random orders, shape [orders, trainings]."""
    orders = random.permuted(np.tile(steps, (ORDERS, 1)), axis=1)
    return np.minimum.accumulate(orders, axis=1)


def train(session: TrainingSession, batch_size: int, rate: float, seed: int, target: Target, limit: int):
    """Return steps to target, None where they are more than ``limit``."""
    session.reset(batch_size, {"learning_rate": rate}, seed)
    curve: list[CurvePoint] = []
    for step in evaluation_steps(limit, LOOK_RATIO):
        block = session.train(step - (curve[-1].step if curve else 0))
        evaluation = session.evaluate("validation")
        curve.append(
            CurvePoint(step, evaluation.metrics, block.training_loss, block.seconds, evaluation.seconds)
        )
        if diverged(curve) or crossing(curve[-4:], target).steps is not None:
            break
    return crossing(curve, target).steps


def trained(question: Question) -> dict:
    """Train the whole grid, then fresh seeds with the best learning rate of each batch size."""
    session = LocalSessions(SESSION_ENTRY, WorkloadReference(question.source)).open()
    description = session.describe()
    target, examples = description.target, EPOCHS_PER_TRIAL * description.training_examples
    assert target is not None
    limits, cells, fresh = {}, {}, {}
    for size in question.batch_sizes:
        limits[size] = max(20, examples // size)
        cells[size] = [
            train(session, size, rate, SEED, target, limits[size]) for rate in question.learning_rates
        ]
        reached = [
            (steps, rate) for steps, rate in zip(cells[size], question.learning_rates, strict=True) if steps
        ]
        best = min(reached)[1] if reached else question.learning_rates[0]
        fresh[size] = [train(session, size, best, seed, target, limits[size]) for seed in FRESH_SEEDS]
        print(f"  batch size {size:5}: learning rate {best:<8.4g} steps {fresh[size]}", flush=True)
    session.close()
    return {"limits": limits, "cells": cells, "fresh": fresh}


def grid(name: str, folder: Path) -> Grid:
    """Return the grid of that name, trained now unless ``folder`` has it."""
    question, file = QUESTIONS[name], folder / f"{name}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(trained(question)))
    kept = json.loads(file.read_text())
    limits, cells, fresh = (
        {int(size): value for size, value in kept[part].items()} for part in ("limits", "cells", "fresh")
    )
    return Grid(question, limits, cells, fresh)


def ask(question: Question, seed: int) -> Advice:
    """Return the advice of a first run over the grid's range of batch sizes."""
    bounds = {"minimum": min(question.batch_sizes), "maximum": max(question.batch_sizes)}
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/advisor.db"
        return advisor.recommend(question.source, storage=storage, batch_sizes=bounds, seed=seed)


@dataclass(frozen=True)
class Answer:
    """One advice beside the grid."""

    cost: float
    cost_with_evaluations: float
    off: float
    slower: float
    batch_size: int
    trainings: int


def compare(found: Grid, advice: Advice, examples: float, evaluations: float, half: float) -> Answer:
    """Return what ``advice`` spent, how far its half-efficiency is off, and what its choice loses.

    An example that is evaluated counts as a third of one that is trained on: it has no backward pass.
    """
    assert advice.recommendation is not None and advice.fit.half_efficiency_batch_size is not None
    times = {
        size: time_s.estimate * found.steps(size)
        for size in found.question.batch_sizes
        if (time_s := advice.throughput.time_per_step_s(size)) is not None
    }
    chosen, spent = advice.recommendation.batch_size, advice.spent
    evaluation = advice.description.examples["validation"] / 3
    return Answer(
        cost=spent.examples / examples,
        cost_with_evaluations=(spent.examples + evaluation * spent.evaluations)
        / (examples + evaluation * evaluations),
        off=advice.fit.half_efficiency_batch_size.estimate / half,
        slower=times[chosen] / min(times.values()) - 1,
        batch_size=chosen,
        trainings=advice.spent.trials,
    )


def report(name: str, found: Grid) -> bool:
    """Ask with each seed and print how the answers compare; return whether all keep the limits."""
    half = found.fit.half_efficiency_batch_size
    assert half is not None
    examples, evaluations = found.spent(np.random.default_rng(0))
    print(
        f"{name}: the grid takes {examples:,.0f} examples and {evaluations:,.0f} evaluations;\n"
        f"  half efficiency {half.estimate:.0f} ({half.low:.0f}–{half.high:.0f}), {found.fit.outcome.name}"
    )
    answers = [
        compare(found, ask(found.question, seed), examples, evaluations, half.estimate)
        for seed in ADVISOR_SEEDS
    ]
    for one in answers:
        print(
            f"  cost {one.cost:6.1%} (with evaluations {one.cost_with_evaluations:6.1%})   "
            f"half efficiency × {one.off:4.2f}   batch size {one.batch_size:5}, "
            f"slower by {one.slower:5.1%}   {one.trainings} trainings"
        )
    cost, slower = (statistics.median(getattr(one, what) for one in answers) for what in ("cost", "slower"))
    off = statistics.median(abs(math.log(one.off)) for one in answers)
    kept = cost <= found.question.most_cost, off <= math.log(MOST_OFF), slower <= MOST_SLOWER
    print(
        f"  median: cost {cost:.1%} (limit {found.question.most_cost:.0%}), off by a factor "
        f"{math.exp(off):.2f} (limit {MOST_OFF}), slower by {slower:.1%} (limit {MOST_SLOWER:.0%}): "
        f"{'kept' if all(kept) else 'missed'}\n",
        flush=True,
    )
    return all(kept)


def main() -> int:
    """Compare on each workload."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", default=",".join(QUESTIONS))
    parser.add_argument("--grids", type=Path, default=Path(tempfile.gettempdir()) / "advisor-grids")
    options = parser.parse_args()
    kept = [report(name, grid(name, options.grids)) for name in options.workloads.split(",")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
