"""``advisor plan``: what other device counts and prices would give, from the store alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.analysis.plan import DeviceTiming, measured_range
from advisor.analysis.plan import what_if as extrapolate
from advisor.analysis.quantities import percent
from advisor.analysis.throughput import summarize
from advisor.errors import WorkloadError
from advisor.records.bottleneck import BottleneckKind
from advisor.records.description import TIMING_PARTS
from advisor.records.measurement import MeasurementRun, Throughput
from advisor.records.plan import DeviceOption, Scenario, Synchronization, SynchronizationSource, WhatIf
from advisor.records.recommendation import Advice, Prices
from advisor.records.scaling import FitOutcome
from advisor.workflows.ports import MeasurementStore, Store
from advisor.workflows.report import report

SHARED = {BottleneckKind.INPUT: "input pipeline", BottleneckKind.HOST: "Python functions"}
"""What more devices on the same machine do not make faster."""


def what_if(
    store: Store,
    workload: str | None,
    options: Sequence[DeviceOption],
    prices: Mapping[str, Any],
    assumed_share: float | None = None,
) -> WhatIf:
    """Return what ``options`` would give for ``workload``, by default the one used last.

    ``prices`` are fields of Prices in place of those of the latest advice. ``assumed_share`` is the part of
    a step that synchronization takes on several devices, from 0 to below 1; it stands for what was measured.
    Raises WorkloadError where no time per step is recorded.
    """
    known = report(store, workload)
    advice = known.advice
    throughput = advice.throughput if advice else known.throughput
    if throughput is None or throughput.largest_feasible_batch_size is None:
        raise WorkloadError(f"No time per step of {known.workload} is recorded. Run `advisor measure` first.")
    synchronization = _synchronization(store, throughput, assumed_share)
    charged = replace(advice.prices if advice else Prices(), **prices)
    described = next(each for each in store.descriptions() if each.name == known.workload)
    timing = DeviceTiming(throughput, synchronization.share, described.training_examples)
    scenarios = extrapolate(timing, advice, options, charged)
    return WhatIf(
        workload=known.workload,
        target=advice.description.target if advice else None,
        measured=measured_range(throughput, advice),
        synchronization=synchronization,
        currency=charged.currency,
        scenarios=scenarios,
        notes=(*known.notes, *_notes(synchronization, throughput, advice, scenarios)),
        next=None if advice else "advisor recommend",
    )


def _synchronization(
    store: MeasurementStore, throughput: Throughput, assumed_share: float | None
) -> Synchronization:
    """Return the assumed share, else the newest that was measured of the same workload, else none."""
    if assumed_share is not None:
        return Synchronization(assumed_share, SynchronizationSource.ASSUMED)
    runs = store.latest_measurements(throughput.workload)
    base = next((run for run in runs if run.fingerprint.timing == throughput.fingerprint), None)
    for run in runs if base else ():
        share = _measured_share(run) if base and _is_alike(run, base) else None
        if share is not None:
            return Synchronization(share, SynchronizationSource.MEASURED, run.configuration.devices)
    return Synchronization(0.0, SynchronizationSource.UNKNOWN)


def _is_alike(run: MeasurementRun, base: MeasurementRun) -> bool:
    """Return whether the same training was timed, if on other devices."""
    changed = set(run.fingerprint.changed(base.fingerprint)) & set(TIMING_PARTS)
    return run.configuration.devices > 1 and changed <= {"configuration"}


def _measured_share(run: MeasurementRun) -> float | None:
    verdict = summarize(run).bottleneck
    return verdict.shares.get(BottleneckKind.SYNCHRONIZATION) if verdict else None


def _notes(
    synchronization: Synchronization,
    throughput: Throughput,
    advice: Advice | None,
    scenarios: Sequence[Scenario],
) -> Iterator[str]:
    if any(scenario.option.devices > 1 for scenario in scenarios):
        yield _synchronization_sentence(synchronization)
        yield from _shared_host(throughput)
    if advice is None:
        yield "No steps to target are recorded, so that time and cost to the target are not known."
        return
    if advice.fit.outcome is not FitOutcome.OK:
        yield str(advice.fit.outcome)
    unknown = [f"{scenario.option.devices:,}" for scenario in scenarios if scenario.cost is None]
    if unknown:
        yield (
            f"Steps to target are not known at any batch size that {', '.join(unknown)} devices could use: "
            "those that were trained tell too little of others."
        )


def _shared_host(throughput: Throughput) -> Iterator[str]:
    verdict = throughput.bottleneck
    if verdict and verdict.kind in (BottleneckKind.INPUT, BottleneckKind.HOST):
        yield (
            f"A step is limited by its {SHARED[verdict.kind]}, which devices of one machine share: they take "
            "these times only on as many machines, or once that is mended (`advisor measure` says how)."
        )


def _synchronization_sentence(synchronization: Synchronization) -> str:
    if synchronization.source is SynchronizationSource.UNKNOWN:
        return (
            "No synchronization cost is known: this is the best that several devices can do. "
            "`--synchronization 10%` assumes that it takes that share of a step."
        )
    share = f"Synchronization on several devices takes {percent(synchronization.share)} of a step"
    if synchronization.source is SynchronizationSource.ASSUMED:
        return f"{share}, as was assumed."
    return f"{share}, as measured on {synchronization.devices}; on more it may take more."
