"""Which recorded measurement no longer holds, and what has changed since."""

from advisor.records.description import TIMING_PARTS, Configuration, WorkloadDescription
from advisor.records.measurement import MeasurementRun
from advisor.workflows.ports import MeasurementStore


def present_measurement(store: MeasurementStore, description: WorkloadDescription) -> MeasurementRun | None:
    """Return what was measured of the workload as it is now, where it is now."""
    runs = store.latest_measurements(description.name)
    timing = description.fingerprint.timing
    return next((run for run in runs if run.fingerprint.timing == timing), None)


def stale_measurement(store: MeasurementStore, description: WorkloadDescription) -> str:
    """Return a sentence about the newest measurement under the same options where none holds, or nothing."""
    options = _options(description.configuration)
    runs = store.latest_measurements(description.name)
    newest = next((run for run in runs if _options(run.configuration) == options), None)
    if newest is None or present_measurement(store, description):
        return ""
    parts = newest.fingerprint.changed(description.fingerprint)
    changed = ", ".join(part for part in parts if part in TIMING_PARTS).replace("_", " ")
    minute = newest.measured_at[:16].replace("T", " ")
    return f"The measurement of {minute} UTC is stale ({changed} changed)."


def _options(configuration: Configuration) -> tuple[str, bool, int | None]:
    """Return what a user chooses: another choice is another question, and leaves the old answer as it is."""
    return configuration.precision, configuration.xla, configuration.steps_per_call
