"""How often the fit's 95 % intervals cover the truth, and how wide they are, over simulated searches.

    python benchmarks/fit_coverage.py [--repetitions 200]

Prints three tables: coverage by setting; outcomes by where the curve turns within the tried range, which
is what the thresholds of the bounds rest on; and outcomes on curves that are no hyperbola.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.analysis.scaling import fit_scaling
from advisor.analysis.scaling_curve import batch_size_at_example_excess, steps_at
from advisor.records.scaling import Crossing, FitOutcome, Observation, ScalingFit, SearchUncertainty

OVERHEAD = 0.2
SMALLEST = 8
GRID_GROWTH = 1.04


@dataclass(frozen=True)
class Setting:
    """A search to simulate.

    Runs scatter by ``noise`` (log; None draws 8 to 17 %), whole batch sizes by ``between``; the best
    hyperparameters lie up to ``slack`` below the selected ones. ``turn`` places B_c within the tried range: 0
    at its lower end, 1 at its upper, None anywhere but within a factor of 2 of the ends.
    """

    batch_sizes: int = 6
    factor: int = 4
    sharpness: float = 1.2
    noise: float | None = None
    seeds: int = 2
    slack: float = 0.1
    between: float = 0.0
    turn: float | None = None

    @property
    def sizes(self) -> np.ndarray:
        return SMALLEST * self.factor ** np.arange(self.batch_sizes)


@dataclass(frozen=True)
class Simulated:
    """What a search found, and the parameters (S_min, B_c, q) behind it."""

    observations: list[Observation]
    uncertainty: list[SearchUncertainty]
    truth: tuple[float, float, float]


def simulate(setting: Setting, random: np.random.Generator, bend: Callable | None = None) -> Simulated:
    """Draw a search; ``bend`` adds to log steps as a function of the position in the range (0 to 1)."""
    sizes = setting.sizes
    truth = _truth(setting, random)
    noise = setting.noise or random.uniform(0.08, 0.17)
    expected = np.log(steps_at(truth, sizes)) + random.uniform(0, setting.slack, len(sizes))
    expected += setting.between * random.standard_normal(len(sizes))
    if bend is not None:
        expected += bend(np.linspace(0, 1, len(sizes)))
    observations = [
        Observation(int(size), crossing(float(np.exp(mean + noise * random.standard_normal())), random))
        for size, mean in zip(sizes, expected, strict=True)
        for _ in range(setting.seeds)
    ]
    return Simulated(observations, [SearchUncertainty(int(size), setting.slack) for size in sizes], truth)


def crossing(steps: float, random: np.random.Generator) -> Crossing:
    """Return how ``steps`` shows on evaluations that lie 4 % and at least one step apart."""
    low, high = 0.0, 1.0
    while high < steps:
        low, high = high, max(high + 1, np.ceil(high * GRID_GROWTH))
    share = (steps - low) / (high - low) + 0.15 * random.standard_normal()
    return Crossing(low + float(np.clip(share, 0.01, 1)) * (high - low), low, high)


def fit(found: Simulated, setting: Setting, seed: int) -> ScalingFit:
    tried = [int(size) for size in setting.sizes]
    return fit_scaling(found.observations, found.uncertainty, tried, OVERHEAD, seed)


def _truth(setting: Setting, random: np.random.Generator) -> tuple[float, float, float]:
    low, high = np.log(setting.sizes[[0, -1]])
    inset = np.log(2) / (high - low)
    turn = random.uniform(inset, 1 - inset) if setting.turn is None else setting.turn
    min_steps = np.exp(random.uniform(np.log(20), np.log(2000)))
    return float(min_steps), float(np.exp(low + turn * (high - low))), setting.sharpness


@dataclass(frozen=True)
class Tally:
    """One fit against its truth, for the critical and the half-efficiency batch size."""

    covered: bool
    half_covered: bool
    ratio: float
    half_ratio: float
    error: float
    outcome: FitOutcome
    seconds: float


def repeat(setting: Setting, repetitions: int, seed: int = 0) -> list[Tally]:
    random = np.random.default_rng(seed)
    return [_once(setting, random, number) for number in range(repetitions)]


def _once(setting: Setting, random: np.random.Generator, seed: int) -> Tally:
    found = simulate(setting, random)
    start = time.perf_counter()
    result = fit(found, setting, seed)
    seconds = time.perf_counter() - start
    critical, half = result.critical_batch_size, result.half_efficiency_batch_size
    assert critical is not None and half is not None
    true_critical, true_half = (
        float(batch_size_at_example_excess(found.truth, excess)) for excess in (OVERHEAD, 1.0)
    )
    return Tally(
        critical.low <= true_critical <= critical.high,
        half.low <= true_half <= half.high,
        critical.high / critical.low if critical.low else np.inf,
        half.high / half.low if half.low else np.inf,
        critical.estimate / true_critical,
        result.outcome,
        seconds,
    )


def _coverage(repetitions: int) -> Iterator[str]:
    yield f"{'':34s} {'critical batch size':42s} {'half efficiency':16s}"
    titles = f"{'covered':>8s} {'high/low':>8s} {'estimate/truth (80 %)':>24s}"
    yield f"{'setting':34s} {titles} {'covered':>8s} {'high/low':>8s} {'s/fit':>6s}"
    everything: list[Tally] = []
    for q in (1.0, 1.2, 1.4, 1.6):
        here: list[Tally] = []
        for batch_sizes, factor in ((5, 2), (5, 4), (6, 2), (6, 4), (8, 2), (8, 4)):
            setting = Setting(batch_sizes, factor, q)
            tallies = repeat(setting, repetitions, seed=batch_sizes * factor)
            yield _row(f"q {q}, {batch_sizes} sizes by factor {factor}", tallies)
            here += tallies
        yield _row(f"q {q}, all", here)
        everything += here
    yield _row("all of these", everything)
    usual = Setting(6, 4)
    yield _row("3 sizes by 4", repeat(replace(usual, batch_sizes=3), repetitions))
    yield _row("4 sizes by 4", repeat(replace(usual, batch_sizes=4), repetitions))
    yield _row("6 sizes by 4, 1 seed", repeat(replace(usual, seeds=1), repetitions))
    yield _row("6 sizes by 4, 5 seeds", repeat(replace(usual, seeds=5), repetitions))
    yield _row("6 sizes by 4, search open by 0.3", repeat(replace(usual, slack=0.3), repetitions))
    yield _row("6 sizes by 4, sizes stray by 10 %", repeat(replace(usual, between=0.1), repetitions))
    yield _row("6 sizes by 4, noise 2 %", repeat(replace(usual, noise=0.02, slack=0.0), repetitions))


def _row(name: str, tallies: Sequence[Tally]) -> str:
    covered, half = np.mean([t.covered for t in tallies]), np.mean([t.half_covered for t in tallies])
    half_ratio = np.median([t.half_ratio for t in tallies])
    low, middle, high = np.quantile([t.error for t in tallies], [0.1, 0.5, 0.9])
    ratio = np.median([t.ratio for t in tallies])
    seconds = np.median([t.seconds for t in tallies])
    error = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
    critical = f"{covered:8.3f} {ratio:8.1f} {error:>24s}"
    return f"{name:34s} {critical} {half:8.3f} {half_ratio:8.1f} {seconds:6.3f}"


def _ends(repetitions: int) -> Iterator[str]:
    yield "true B_c as a multiple of the        share of outcomes                          covered where"
    shares = f"{'ok':>6s} {'lower':>6s} {'upper':>6s} {'not hyp.':>9s}"
    yield f"{'largest tried / smallest tried':34s} {shares} {'covered':>8s} {'ok, high/low':>13s}"
    setting = Setting(6, 4)
    span = np.log(setting.sizes[-1] / setting.sizes[0])
    for end in ("largest", "smallest"):
        for multiple in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8):
            turn = np.log(multiple) / span + (1 if end == "largest" else 0)
            tallies = repeat(replace(setting, turn=float(turn)), repetitions)
            ok = [t.ratio for t in tallies if t.outcome is FitOutcome.OK]
            width = f"{np.median(ok):.1f}" if ok else "-"
            covered = np.mean([t.covered for t in tallies])
            yield f"{multiple:8g} × {end:23s} {_shares(tallies)} {covered:8.3f} {width:>13s}"


def _shares(tallies: Sequence[Tally]) -> str:
    counts = Counter(t.outcome for t in tallies)
    order = (FitOutcome.OK, FitOutcome.LOWER_BOUND, FitOutcome.UPPER_BOUND, FitOutcome.NOT_HYPERBOLIC)
    shares = [counts[outcome] / len(tallies) for outcome in order]
    return f"{shares[0]:6.3f} {shares[1]:6.3f} {shares[2]:6.3f} {shares[3]:9.3f}"


BENDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda position: 0.0 * position,
    "examples fall by 20 % before they rise": lambda position: 0.2 * np.maximum(0, 1 - 2 * position),
    "examples fall by 40 % before they rise": lambda position: 0.5 * np.maximum(0, 1 - 2 * position),
    "examples fall by 60 % before they rise": lambda position: 0.9 * np.maximum(0, 1 - 2 * position),
    "one size takes 1.5 times the steps": lambda position: 0.4 * (np.arange(len(position)) == 2),
    "one size takes 2.2 times the steps": lambda position: 0.8 * (np.arange(len(position)) == 2),
    "steps rise again: × 1.7 at the end": lambda position: 0.5 * np.maximum(0, 2 * position - 1),
    "steps rise again: × 3.3 at the end": lambda position: 1.2 * np.maximum(0, 2 * position - 1),
}


def _shapes(repetitions: int) -> Iterator[str]:
    yield f"{'not hyperbolic, of':42s} {'5 by 4':>8s} {'6 by 4':>8s} {'8 by 2':>8s} {'8 by 2, 4 seeds':>16s}"
    settings = (Setting(5, 4), Setting(6, 4), Setting(8, 2), Setting(8, 2, seeds=4))
    for name, bend in BENDS.items():
        shares = []
        for setting in settings:
            random = np.random.default_rng(1)
            at = replace(setting, turn=0.6)
            fits = [fit(simulate(at, random, bend), at, number) for number in range(repetitions)]
            shares.append(np.mean([one.outcome is FitOutcome.NOT_HYPERBOLIC for one in fits]))
        yield f"{name:42s} {shares[0]:8.3f} {shares[1]:8.3f} {shares[2]:8.3f} {shares[3]:16.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    for table in (_coverage, _ends, _shapes):
        for line in table(repetitions):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
