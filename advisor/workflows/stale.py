"""Which recorded measurement no longer holds, and what has changed since."""

from advisor.records.description import WorkloadDescription
from advisor.records.measurement import MeasurementRun
from advisor.workflows.ports import MeasurementStore


def present_measurement(store: MeasurementStore, description: WorkloadDescription) -> MeasurementRun | None:
    """Return what was measured of the workload as it is now, where it is now."""
    runs = store.latest_measurements(description.name)
    timing = description.fingerprint.timing
    return next((run for run in runs if run.fingerprint.timing == timing), None)


def stale_measurement(store: MeasurementStore, description: WorkloadDescription) -> str:
    """Return a sentence about the newest measurement where none holds, or nothing."""
    runs = store.latest_measurements(description.name)
    if not runs or present_measurement(store, description):
        return ""
    changed = ", ".join(runs[0].fingerprint.changed(description.fingerprint)).replace("_", " ")
    minute = runs[0].measured_at[:16].replace("T", " ")
    return f"The measurement of {minute} UTC is stale ({changed} changed)."
