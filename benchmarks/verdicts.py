"""Verdicts of `measure` on planted faults, and on healthy pipelines.

A plant counts as right where the verdict is of the expected kind and, for a fault of the input pipeline, its
slowest stage and the unused feature are found too. On a healthy pipeline nothing that the user wrote may be
blamed: neither input nor Python functions nor synchronization.

    python benchmarks/verdicts.py [--cases MODULE]

MODULE has lists ``PLANTS`` and ``HEALTHY`` of ``verdict_cases.Case``.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter

from verdict_cases import Case

import advisor
from advisor.analysis.throughput import summarize
from advisor.errors import AdvisorError
from advisor.records.bottleneck import BottleneckKind, InputDiagnosis
from advisor.records.measurement import MeasurementRun, Throughput

BLAMES = (BottleneckKind.INPUT, BottleneckKind.HOST, BottleneckKind.SYNCHRONIZATION)


@dataclass(frozen=True)
class Finding:
    """What was said of a case: a kind or an error, its share of a step, and what is known of the pipeline."""

    case: Case
    said: str
    share: float | None
    diagnosis: InputDiagnosis
    seconds: float

    @property
    def slowest_stage(self) -> str:
        stages = self.diagnosis.stages
        return max(stages, key=lambda stage: stage.time_per_example_s).name if stages else ""

    @property
    def is_right(self) -> bool:
        case, unused = self.case, self.diagnosis.unused_features
        if case.expected is None:
            return self.said in set(BottleneckKind) - set(BLAMES)
        return (
            self.said == case.expected and case.stage in self.slowest_stage and {case.unused} <= {"", *unused}
        )


def find(case: Case) -> Finding:
    """Measure ``case``; an error is a finding, and a wrong one."""
    start = perf_counter()
    try:
        found = throughput(case)
    except AdvisorError as error:
        return Finding(case, f"error: {error}", None, InputDiagnosis(0), perf_counter() - start)
    verdict, diagnosis = found.bottleneck, found.diagnosis or InputDiagnosis(0)
    said = verdict.kind.value if verdict else "nothing"
    share = verdict.share.estimate if verdict and verdict.share else None
    return Finding(case, said, share, diagnosis, perf_counter() - start)


def throughput(case: Case) -> Throughput:
    """Return what `measure` says with nothing known before."""
    if isinstance(case.workload, MeasurementRun):
        return summarize(case.workload)
    with tempfile.TemporaryDirectory() as folder:
        return advisor.measure(case.workload, storage=f"sqlite:///{folder}/advisor.db", **case.choices)


def show(*columns: str) -> None:
    """Print one line of a table."""
    print("{:26} {:>16} {:>16} {:>6} {:>6}  {:5}  {}".format(*columns), flush=True)


def run(cases: Sequence[Case]) -> int:
    """Print a line for each case; return how many are right."""
    show("case", "expected", "found", "share", "time", "right", "slowest stage; unused features")
    right = 0
    for case in cases:
        found = find(case)
        right += found.is_right
        show(*columns(found))
    return right


def columns(found: Finding) -> Sequence[str]:
    """Return what the table says of ``found``."""
    expected = found.case.expected or "no blame"
    share = "" if found.share is None else f"{found.share:.0%}"
    named = "; ".join(filter(None, (found.slowest_stage, *found.diagnosis.unused_features)))
    right = "yes" if found.is_right else "no"
    return found.case.name, expected, found.said, share, f"{found.seconds:.0f} s", right, named


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--cases", default="verdict_cases", metavar="MODULE")
    module = import_module(parser.parse_args().cases)
    plants, healthy = module.PLANTS, module.HEALTHY
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # Workloads write files, and their processes end without ceremony.
        right = run(plants)
        print(f"right: {right} of {len(plants)}\n")
        spared = run(healthy)
        print(f"healthy ones blamed: {len(healthy) - spared} of {len(healthy)}   limit 0")
    return 0 if (right, spared) == (len(plants), len(healthy)) else 1


if __name__ == "__main__":
    sys.exit(main())
