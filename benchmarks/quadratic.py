"""The whole of `recommend` on the noisy quadratic model with noisy evaluations, hundreds of times.

Each study has a random target. The truth is the fit of the same curve to the model's exact fewest steps at
the batch sizes that the study looked at; how far that fit lies from the batch size where the exact examples
are twice their minimum is told beside it as lack of fit. Rows: SGD, heavy ball, two other spectra, and,
without a limit, seeds that differ by 12 % beside the noise of evaluations.

    python benchmarks/quadratic.py [--studies 300] [--rows sgd,heavy-ball]
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from pathlib import Path

import numpy as np

from advisor.analysis.quadratic import QuadraticModel, best_learning_rate
from advisor.analysis.scaling import fit_scaling
from advisor.analysis.scaling_curve import batch_size_at_example_excess
from advisor.execution.load import LoadWatch
from advisor.records.recommendation import Advice
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.records.scaling import Crossing, Observation
from advisor.records.target import Target
from advisor.reporting.note import search_note
from advisor.reporting.progress import QuietProgress
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.workflows.recommend import plan, recommend
from advisor.workflows.tools import Tools

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.fakes.memory_board import MemoryBoard
from tests.fakes.memory_store import MemoryStore

SIZES = [2**power for power in range(15)]
TARGETS = 20
"""Random targets of a row, each asked for by as many studies."""
TARGET_SHARES = 0.01, 0.1
"""The loss aimed at, as a share of the loss of the untrained model."""
COVERAGE = 0.9
LIMITS = {
    "median ratio": (0.95, 1.05),
    "within 1.25": (0.9, 1.0),
    "covered": (0.88, 1.0),
    "width": (1.0, 2.0),
}
NOISY = QuadraticSettings(evaluation_noise=0.05, fixed=("momentum",))
ROWS = {
    "sgd": NOISY,
    "heavy-ball": replace(NOISY, momentum=0.9),
    "i^-0.7": replace(NOISY, exponent=0.7),
    "i^-1.5": replace(NOISY, exponent=1.5),
    "seeds-differ": replace(NOISY, log_noise=0.12),
}
WITHOUT_LIMIT = ("seeds-differ",)


@dataclass(frozen=True)
class Tally:
    """One study: half-efficiency batch size and the share of draws behind its interval, beside the truth."""

    ratio: float
    covered: bool
    width: float
    lack_of_fit: float
    batch_sizes: int
    trainings: int
    regret: float


def true_steps(settings: QuadraticSettings, batch_size: int) -> float:
    """Return the fewest steps to the target at the best learning rate, exactly."""
    return _true_steps(settings.exponent, settings.momentum, settings.target.value, batch_size)


@cache
def _true_steps(exponent: float, momentum: float, target: float, batch_size: int) -> float:
    model = QuadraticModel.power_law(exponent)
    steps = best_learning_rate(model, batch_size, target, momentum)[1]
    return math.inf if steps is None else float(steps)


def true_half_efficiency(settings: QuadraticSettings) -> float:
    """Return where the exact examples to target are twice their minimum, between powers of two."""
    examples = [size * true_steps(settings, size) for size in SIZES]
    return math.exp(float(np.interp(math.log(2 * min(examples)), np.log(examples), np.log(SIZES))))


def fitted_half_efficiency(settings: QuadraticSettings, sizes: Sequence[int]) -> float:
    """Return the half-efficiency batch size of the fit to the exact steps at ``sizes``."""
    exact = {size: true_steps(settings, size) for size in sizes}
    seen = [Observation(size, Crossing(steps, steps, steps)) for size, steps in exact.items()]
    half = fit_scaling(seen, [], sizes, 0.2, seed=0, draws=20).half_efficiency_batch_size
    assert half is not None
    return half.estimate


def advise(settings: QuadraticSettings, store: MemoryStore, seed: int) -> Advice:
    """Run the whole of `recommend`; what it records is kept in memory, since a database takes longest."""
    return recommend(_tools(settings, deepcopy(store)), _request(seed), search_note)


def measured(settings: QuadraticSettings) -> MemoryStore:
    """Return a store with the throughput, which is the same in every study: its times follow a model."""
    store = MemoryStore()
    plan(_tools(settings, store), _request(seed=0))
    return store


def _tools(settings: QuadraticSettings, store: MemoryStore) -> Tools:
    return Tools(QuadraticSessions(settings), store, MemoryBoard(), QuietProgress(), LoadWatch())


def _request(seed: int) -> RecommendRequest:
    return RecommendRequest(batch_sizes=BatchSizes(1, SIZES[-1]), max_examples_per_trial=10**9, seed=seed)


def study(settings: QuadraticSettings, store: MemoryStore, seed: int) -> Tally:
    """Ask for advice once and compare it with the truth."""
    advice = advise(settings, store, seed)
    half, recommended = advice.fit.half_efficiency_batch_size, advice.recommendation
    assert half is not None and recommended is not None
    sizes = sorted(result.batch_size for result in advice.results)
    truth = fitted_half_efficiency(settings, sizes)
    drawn = batch_size_at_example_excess(advice.fit.draws, 1.0)
    low, high = np.quantile(drawn, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    times = {
        size: true_steps(settings, size) * (settings.fixed_s + settings.per_example_s * size)
        for size in SIZES
    }
    return Tally(
        ratio=half.estimate / truth,
        covered=low <= truth <= high,
        width=high / low,
        lack_of_fit=truth / true_half_efficiency(settings),
        batch_sizes=len(sizes),
        trainings=advice.spent.trials,
        regret=times[recommended.batch_size] / min(times.values()) - 1,
    )


def settings_of(row: str, target: int) -> QuadraticSettings:
    """Return the row's settings with its random target of that number."""
    settings = ROWS[row]
    low, high = np.log(TARGET_SHARES)
    share = math.exp(np.random.default_rng([target, *row.encode()]).uniform(low, high))
    model = QuadraticModel.power_law(settings.exponent, settings.dimension, settings.bins)
    return replace(settings, target=Target("loss", at_most=share * model.initial_loss))


def studies(row: str, target: int, count: int) -> list[Tally]:
    """Return the studies of one target."""
    settings = settings_of(row, target)
    store = measured(settings)
    return [study(settings, store, 1000 * (count * target + number)) for number in range(count)]


def figures(tallies: Sequence[Tally]) -> dict[str, float]:
    """Return what the limits are on."""
    ratios = np.array([tally.ratio for tally in tallies])
    return {
        "median ratio": float(np.median(ratios)),
        "within 1.25": float(np.mean(np.abs(np.log(ratios)) <= math.log(1.25))),
        "covered": float(np.mean([tally.covered for tally in tallies])),
        "width": float(np.median([tally.width for tally in tallies])),
    }


def show(row: str, tallies: Sequence[Tally], seconds: float) -> bool:
    """Print one row; return whether it keeps the limits."""
    found = figures(tallies)
    kept = all(low <= found[name] <= high for name, (low, high) in LIMITS.items())
    lack = np.median([tally.lack_of_fit for tally in tallies])
    sizes, trainings = (np.mean([getattr(t, name) for t in tallies]) for name in ("batch_sizes", "trainings"))
    regret = np.mean([tally.regret for tally in tallies])
    print(
        f"{row:13} {found['median ratio']:8.3f} {found['within 1.25']:8.1%} {found['covered']:8.1%} "
        f"{found['width']:6.2f} {lack:8.2f} {sizes:6.1f} {trainings:10.1f} {regret:7.1%} {seconds:6.0f}  "
        f"{'kept' if kept else 'missed'}",
        flush=True,
    )
    return kept or row in WITHOUT_LIMIT


def main() -> int:
    """Print one row for each kind of study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--rows", default=",".join(ROWS))
    options = parser.parse_args()
    count = max(1, options.studies // TARGETS)
    limits = ", ".join(f"{name} {low:g}–{high:g}" for name, (low, high) in LIMITS.items())
    print(f"half-efficiency batch size over the truth; {TARGETS * count} studies a row; limits: {limits}\n")
    print(
        f"{'':13} {'median':>8} {'within':>8} {'90 % in-':>8} {'high/':>6} {'lack of':>8} {'batch':>6} "
        f"{'':>10} {'slower':>7}\n{'':13} {'ratio':>8} {'1.25':>8} {'tervals':>8} {'low':>6} {'fit':>8} "
        f"{'sizes':>6} {'trainings':>10} {'by':>7} {'s':>6}"
    )
    kept = []
    with ProcessPoolExecutor() as pool:
        for row in options.rows.split(","):
            start = time.perf_counter()
            found = pool.map(studies, repeat(row), range(TARGETS), repeat(count))
            kept.append(
                show(row, [tally for tallies in found for tally in tallies], time.perf_counter() - start)
            )
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
