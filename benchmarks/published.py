"""The fit of steps to target on curves that others measured, beside what their tables led one to expect.

Each table's outcome was written down from its figures before the first fit. Leaving each batch size out in
turn says how well the others predict its steps; the smallest and the largest are extrapolated to. The last
lines are the limits.

    python benchmarks/published.py [--tables ../shared/reference]
"""

import argparse
import csv
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fit_coverage import OVERHEAD, Setting, simulate

from advisor.analysis.scaling import fit_scaling, predict_steps, steps_at
from advisor.records.intervals import Interval
from advisor.records.scaling import Crossing, FitOutcome, Observation, ScalingFit

OK, LOWER_BOUND, NOT_HYPERBOLIC = FitOutcome.OK, FitOutcome.LOWER_BOUND, FitOutcome.NOT_HYPERBOLIC

# Outcome and reason of each table, written down before it was fitted. Those of zhang2024, bert, cosmoflow,
# gpt3 and the noisy quadratic model are also what tests/analysis/test_scaling_published.py asks for.
EXPECTED: Mapping[str, tuple[FitOutcome, str]] = {
    "zhang2024 85M": (
        OK,
        "Examples are level up to 128 and steps from 8192, with B_c some way between.",
    ),
    "zhang2024 302M": (
        OK,
        "Examples are level up to 512 and double at about 6000, which puts B_c below half of 16384.",
    ),
    "zhang2024 1.2B": (
        LOWER_BOUND,
        "Examples double only at about 10000, which puts B_c just above half of 16384.",
    ),
    "mlperf bert": (
        LOWER_BOUND,
        "Examples double only at about 14500, close to the largest batch size, and steps fall to the end.",
    ),
    "mlperf cosmoflow": (
        NOT_HYPERBOLIC,
        "Steps rise from 32 to 64, since 32 was trained with another schedule.",
    ),
    "mlperf maskrcnn": (
        LOWER_BOUND,
        "Examples grow by no more than 35 % over a factor of 34 in batch size.",
    ),
    "mlperf rnnt": (
        LOWER_BOUND,
        "A line through the examples has B_c at about 3700, above half of 6144.",
    ),
    "mlperf unet3d": (
        LOWER_BOUND,
        "Examples differ by less than a fifth over a factor of 42 in batch size: perfect scaling.",
    ),
    "mlperf dlrm_dcnv2": (
        LOWER_BOUND,
        "Examples grow by 35 % in all, so that they double beyond the largest batch size.",
    ),
    "mlperf gpt3": (
        LOWER_BOUND,
        "Examples grow by 36 % in all and the one wild run is one of seven at its batch size.",
    ),
    "noisy quadratic sgd_const_lr 0.1": (
        OK,
        "Examples are level up to 8 and steps from 100000, with the turn near 100.",
    ),
    "noisy quadratic sgd_const_lr 0.01": (
        OK,
        "Examples are level up to 64 and steps from 100000, with the turn near 1000.",
    ),
    "digits nesterov_0.9": (
        OK,
        "Examples are level from 4 to 16, steps from 256 to 1024, and examples double at about 80.",
    ),
    "digits adam": (
        OK,
        "Examples fall by no more than seeds differ from 4 to 16, then grow by a factor of 11; at 1024 steps "
        "fall by no more than a third.",
    ),
}

FEWEST_BATCH_SIZES = 5
ENTRY_ERROR_EXAMPLES = 1e10
"""gpt3 at 3072 has a run of 13.8 billion examples among others of 1.2 billion."""

LARGEST_ERROR = 0.10
LARGEST_MOVE = 0.10
LONGEST_FIT_S = 1.0


@dataclass(frozen=True)
class Finding:
    """A table's fit, and the relative error of the steps predicted for each batch size left out."""

    name: str
    fit: ScalingFit
    errors: Sequence[float]

    @property
    def expected(self) -> FitOutcome:
        return EXPECTED[self.name][0]

    @property
    def error(self) -> float:
        return statistics.median(self.errors)


def tables(folder: Path) -> dict[str, list[Observation]]:
    """Return every table with five or more batch sizes, by name."""
    readers = (zhang, mlperf, mlperf_summary, quadratic, digits)
    found: dict[str, list[Observation]] = defaultdict(list)
    for read in readers:
        for name, batch_size, steps in read(folder):
            found[name].append(reached(batch_size, steps))
    return {name: seen for name, seen in found.items() if len(sizes_of(seen)) >= FEWEST_BATCH_SIZES}


def reached(batch_size: int, steps: float) -> Observation:
    return Observation(batch_size, Crossing(steps, steps, steps))


Runs = Iterator[tuple[str, int, float]]
"""Table, batch size and steps to target of each run."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def zhang(folder: Path) -> Runs:
    """Two readings of one sweep stand for two runs."""
    for row in rows(folder / "zhang2024_cbs_steps_to_target.csv"):
        for reading in ("steps_cell5_used_in_fit", "steps_cell1_wandb_query"):
            yield f"zhang2024 {row['model_size']}", int(row["batch_size_seqs512"]), float(row[reading])


def mlperf(folder: Path) -> Runs:
    """Epochs stand for examples: a constant factor in steps moves no batch size."""
    for row in rows(folder / "mlperf_rcp_long.csv"):
        size = int(row["batch_size"])
        yield f"mlperf {row['benchmark']}", size, float(row["examples_to_target_raw"]) / size


def mlperf_summary(folder: Path) -> Runs:
    """Of what has no single runs, the mean less and plus a standard deviation stand for two."""
    single = {row["benchmark"] for row in rows(folder / "mlperf_rcp_long.csv")}
    for row in rows(folder / "mlperf_rcp_summary.csv"):
        if row["benchmark"] not in single:
            size, mean, spread = int(row["batch_size"]), float(row["mean"]), float(row["sd"])
            for examples in (mean - spread, mean + spread):
                yield f"mlperf {row['benchmark']}", size, examples / size


def quadratic(folder: Path) -> Runs:
    for row in rows(folder / "nqm_ground_truth.csv"):
        name = f"noisy quadratic {row['optimizer']} {row['target_loss']}"
        yield name, int(row["batch_size"]), float(row["steps_opt"])


def digits(folder: Path) -> Runs:
    """The learning rate with the fewest steps, geometric mean of its seeds, where all of them arrived."""
    runs: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(folder / "digits_surface.csv"):
        key = row["optimizer"], int(row["batch_size"])
        runs[key][row["learning_rate"]].append(float(row["steps_to_target"] or math.inf))
    for (optimizer, size), by_rate in runs.items():
        best = min(by_rate.values(), key=lambda steps: sum(map(math.log, steps)))
        for steps in best:
            yield f"digits {optimizer}", size, steps


def sizes_of(observations: Sequence[Observation]) -> list[int]:
    return sorted({seen.batch_size for seen in observations})


def fit(observations: Sequence[Observation], draws: int = 1000) -> ScalingFit:
    return fit_scaling(observations, [], sizes_of(observations), OVERHEAD, seed=0, draws=draws)


def left_out_errors(observations: Sequence[Observation]) -> list[float]:
    """Return the relative error, by ascending batch size, of the steps predicted from the others."""
    return [left_out_error(observations, size) for size in sizes_of(observations)]


def left_out_error(observations: Sequence[Observation], size: int) -> float:
    rest = [seen for seen in observations if seen.batch_size != size]
    steps = [seen.crossing.steps for seen in observations if seen.batch_size == size and seen.crossing.steps]
    predicted = predict_steps(fit(rest, draws=20), size).estimate
    return abs(predicted / statistics.geometric_mean(steps) - 1)


def find(name: str, observations: Sequence[Observation]) -> Finding:
    return Finding(name, fit(observations), left_out_errors(observations))


def row_of(finding: Finding) -> str:
    """Return the table's line: outcomes, half-efficiency batch size, errors."""
    half = finding.fit.half_efficiency_batch_size
    assert half is not None
    inside, ends = finding.errors[1:-1], (finding.errors[0], finding.errors[-1])
    return (
        f"{finding.name:34} {finding.expected.name:14} {finding.fit.outcome.name:14} {shown(half):>26} "
        f"{finding.error:6.1%} {statistics.median(inside):6.1%} {ends[0]:6.1%} {ends[1]:6.1%}"
    )


HEADING = (
    f"{'':64} {'half-efficiency':>26} {'error of the steps left out':>27}\n"
    f"{'table':34} {'expected':14} {'found':14} {'batch size':>26} "
    f"{'all':>6} {'inside':>6} {'least':>6} {'most':>6}"
)


def shown(interval: Interval) -> str:
    return f"{interval.estimate:,.0f} ({interval.low:,.0f}–{interval.high:,.0f})"


def noise_alone(finding: Finding, observations: Sequence[Observation], repetitions: int = 200) -> str:
    """Return what the error would be if the fitted curve were true and runs strayed as seeds do here."""
    assert finding.fit.estimate is not None
    by_size = defaultdict(list)
    for seen in observations:
        by_size[seen.batch_size].append(math.log(seen.crossing.steps or math.nan))
    spread = math.sqrt(statistics.mean(statistics.variance(logs) for logs in by_size.values()))
    sizes = np.array([seen.batch_size for seen in observations])
    random = np.random.default_rng(0)
    errors = []
    for _ in range(repetitions):
        steps = steps_at(finding.fit.estimate, sizes) * np.exp(spread * random.standard_normal(len(sizes)))
        errors.append(statistics.median(left_out_errors(list(map(reached, sizes.tolist(), steps.tolist())))))
    low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9])
    return f"    seeds differ by {spread:.0%}: on a true curve {middle:.1%} ({low:.1%}–{high:.1%} in 80 %)"


def moved_by_the_entry_error(observations: Sequence[Observation]) -> dict[str, float]:
    """Return how far, as a fraction, the wild run moves what the fit says."""
    sound = [
        seen for seen in observations if (seen.crossing.steps or 0) * seen.batch_size < ENTRY_ERROR_EXAMPLES
    ]
    before, after = fit(sound), fit(observations)
    half, moved_half = before.half_efficiency_batch_size, after.half_efficiency_batch_size
    assert half is not None and moved_half is not None
    steps = [
        abs(predict_steps(after, size).estimate / predict_steps(before, size).estimate - 1)
        for size in sizes_of(observations)
    ]
    return {
        "half-efficiency batch size": abs(moved_half.estimate / half.estimate - 1),
        "its low end": abs(moved_half.low / half.low - 1),
        "steps, at most": max(steps),
    }


def seconds_of_a_fit(draws: int, repetitions: int = 7) -> float:
    """Return the median time of fits of 20 batch sizes with two seeds each."""
    observations = simulate(Setting(20, 2), np.random.default_rng(0)).observations
    return statistics.median(timed(observations, draws) for _ in range(repetitions))


def timed(observations: Sequence[Observation], draws: int) -> float:
    start = time.perf_counter()
    fit(observations, draws)
    return time.perf_counter() - start


def judged(figure: str, value: str, limit: str, kept: bool) -> bool:
    print(f"{figure:64} {value:>8}  limit {limit:8} {'kept' if kept else 'missed'}", flush=True)
    return kept


def judge(findings: Sequence[Finding], observations: Mapping[str, Sequence[Observation]]) -> bool:
    """Print the figures beside their limits; return whether all are kept."""
    agreed = sum(finding.fit.outcome is finding.expected for finding in findings)
    kept = [judged("outcomes as expected", f"{agreed} of {len(findings)}", "all", agreed == len(findings))]
    for finding in findings:
        if finding.expected is OK:
            figure = f"error of the steps left out, {finding.name}"
            kept.append(limited(figure, finding.error, LARGEST_ERROR))
            if not kept[-1]:
                print(noise_alone(finding, observations[finding.name]))
    for figure, move in moved_by_the_entry_error(observations["mlperf gpt3"]).items():
        kept.append(limited(f"the entry error of gpt3 moves {figure}", move, LARGEST_MOVE))
    for draws in (400, 1000):
        seconds = seconds_of_a_fit(draws)
        figure = f"fit of 20 batch sizes, 2 seeds each, {draws} draws"
        kept.append(judged(figure, f"{seconds:.2f} s", f"{LONGEST_FIT_S:g} s", seconds <= LONGEST_FIT_S))
    return all(kept)


def limited(figure: str, share: float, limit: float) -> bool:
    return judged(figure, f"{share:.1%}", f"{limit:.0%}", share <= limit)


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    default = Path(__file__).parents[1] / "../shared/reference"
    parser.add_argument("--tables", type=Path, default=default, metavar="FOLDER")
    folder = parser.parse_args().tables
    if not (folder / "zhang2024_cbs_steps_to_target.csv").is_file():
        print(
            f"{folder} does not hold the published tables: name the folder that does with --tables.",
            file=sys.stderr,
        )
        return 1
    observations = tables(folder)
    print(HEADING)
    findings = [find(name, seen) for name, seen in observations.items()]
    for finding in findings:
        print(row_of(finding), flush=True)
    print()
    return 0 if judge(findings, observations) else 1


if __name__ == "__main__":
    sys.exit(main())
