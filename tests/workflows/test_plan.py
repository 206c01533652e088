"""What-if over what the noisy quadratic model left in the store."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from advisor.errors import WorkloadError
from advisor.records.measurement import BatchMeasurement, MeasurementRun
from advisor.records.plan import DeviceOption, SynchronizationSource, WhatIf
from advisor.records.recommendation import Advice, Prices
from advisor.records.requests import BatchSizes, MeasureRequest, RecommendRequest
from advisor.training.quadratic_session import NAME, QuadraticSessions, QuadraticSettings
from advisor.workflows.measure import measure
from advisor.workflows.plan import what_if
from advisor.workflows.tools import Tools
from tests.fakes.memory_store import MemoryStore
from tests.workflows.conftest import recommend, tools_for

REQUEST = RecommendRequest(
    batch_sizes=BatchSizes(listed=(16, 64, 256)),
    max_examples_per_trial=10**9,
    seeds=1,
    prices=Prices(2.0, "EUR"),
)
ALL = [DeviceOption(devices) for devices in (1, 2, 4, 8)]


@pytest.fixture(scope="module")
def known() -> Tools:
    """Tools with a recorded advice."""
    tools = tools_for(QuadraticSessions(QuadraticSettings()))
    recommend(tools, REQUEST)
    return tools


def latest(tools: Tools) -> Advice:
    advice = tools.store.latest_advice(NAME)
    assert advice is not None
    return advice


def plan(tools: Tools, options: Sequence[DeviceOption] = ALL, share: float | None = None) -> WhatIf:
    return what_if(tools.store, None, options, {}, share)


def test_one_device_is_the_advice_and_more_follow_the_model(known: Tools) -> None:
    answer, recommendation = plan(known), latest(known).recommendation
    one, *more = answer.scenarios
    assert recommendation is not None and one.cost is not None
    assert (one.batch_size, one.cost.money) == (recommendation.batch_size, recommendation.money)
    for scenario in more:
        devices, size = scenario.option.devices, scenario.batch_size
        assert scenario.time_per_step_s.estimate == pytest.approx(1e-3 + 1e-5 * size / devices, rel=0.01)
        assert scenario.cost and scenario.cost.money and scenario.extrapolated
    assert (answer.workload, answer.currency, answer.next) == (NAME, "EUR", None)
    assert answer.measured.per_device == (16, 256)


def test_prices_of_the_advice_hold_unless_others_are_given(known: Tools) -> None:
    own, other = (
        what_if(known.store, NAME, ALL[:1], prices)
        for prices in ({}, {"price_per_device_hour": 6.0, "power_w": 500.0})
    )
    before, after = own.scenarios[0].cost, other.scenarios[0].cost
    assert before and after and before.money and after.money and after.energy_kwh
    assert after.money.estimate == pytest.approx(3 * before.money.estimate)
    assert after.energy_kwh.estimate == pytest.approx(0.5 * after.device_hours.estimate)
    assert other.currency == "EUR"


def test_an_unknown_synchronization_is_said_to_be_the_best_case(known: Tools) -> None:
    answer = plan(known)
    assert answer.synchronization.source is SynchronizationSource.UNKNOWN
    assert any("this is the best that several devices can do" in note for note in answer.notes)
    assert not any("best that" in note for note in plan(known, ALL[:1]).notes)


def test_an_assumed_synchronization_is_used_and_said(known: Tools) -> None:
    answer = plan(known, share=0.25)
    assert answer.synchronization.source is SynchronizationSource.ASSUMED
    assert any("takes 25 % of a step, as was assumed" in note for note in answer.notes)
    without, slower = plan(known).scenarios[1], answer.scenarios[1]
    assert without.cost and slower.cost
    ratio = without.cost.time_to_target_s.estimate / slower.cost.time_to_target_s.estimate
    assert ratio == pytest.approx(0.75)


def on_two_devices(run: MeasurementRun, changed: str = "configuration") -> MeasurementRun:
    """The same sweep on two devices, each of which alone takes four fifths of the time."""

    def with_workers(row: BatchMeasurement) -> BatchMeasurement:
        alone = tuple(replace(block, seconds=0.8 * block.seconds) for block in row.compute_blocks)
        return replace(row, worker_blocks=(alone, alone))

    return replace(
        run,
        fingerprint=replace(run.fingerprint, **{changed: "another"}),
        configuration=replace(run.configuration, devices=2, workers=2),
        measurements=tuple(map(with_workers, run.measurements)),
    )


@pytest.mark.parametrize("changed", ["configuration", "model"])
def test_a_share_measured_on_several_devices_is_used_where_the_training_is_the_same(
    known: Tools, changed: str
) -> None:
    store = MemoryStore()
    (run,) = known.store.latest_measurements(NAME)
    for one in (run, on_two_devices(run, changed)):
        store.add_measurements(NAME, one.fingerprint, one.configuration, one.environment, one.measurements)
    store.save_description(latest(known).description)
    store.save_advice(latest(known))
    found = what_if(store, NAME, ALL, {})
    if changed == "model":
        assert found.synchronization.source is SynchronizationSource.UNKNOWN
        return
    assert found.synchronization.source is SynchronizationSource.MEASURED
    assert found.synchronization.share == pytest.approx(0.2, abs=0.02)
    assert found.synchronization.devices == 2
    assert any("as measured on 2" in note for note in found.notes)


def test_without_advice_there_is_throughput_and_the_command_for_the_rest() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings()))
    measure(tools, MeasureRequest(BatchSizes(16, 256)))
    answer = plan(tools)
    assert all(scenario.cost is None for scenario in answer.scenarios)
    speeds = [scenario.throughput_examples_per_s.estimate for scenario in answer.scenarios]
    assert speeds == pytest.approx([devices * speeds[0] for devices in (1, 2, 4, 8)], rel=0.01)
    assert answer.next == "advisor recommend" and answer.target is None
    assert any("No steps to target are recorded" in note for note in answer.notes)


def test_what_devices_of_one_machine_share_is_said() -> None:
    tools = tools_for(QuadraticSessions(QuadraticSettings(input_share=3.0)))
    measure(tools, MeasureRequest(BatchSizes(16, 64)))
    (said,) = [note for note in plan(tools).notes if "share" in note and "machine" in note]
    assert "limited by its input pipeline" in said
    assert not any("machine" in note for note in plan(tools, ALL[:1]).notes)


def test_nothing_recorded_is_told() -> None:
    with pytest.raises(WorkloadError, match="Nothing is recorded in this database yet"):
        what_if(MemoryStore(), None, ALL, {})


def test_a_workload_without_a_measurement_is_told(known: Tools) -> None:
    store = MemoryStore()
    store.save_description(latest(known).description)
    with pytest.raises(WorkloadError, match=r"No time per step of noisy-quadratic.*advisor measure"):
        what_if(store, NAME, ALL, {})


def test_a_curve_that_tells_little_is_said_with_its_outcome(known: Tools) -> None:
    store = MemoryStore()
    advice = latest(known)
    store.save_description(advice.description)
    hopeless = replace(advice, results=(), costs=(), recommendation=None)
    store.save_advice(hopeless)
    answer = what_if(store, NAME, ALL[:2], {})
    assert [scenario.cost for scenario in answer.scenarios] == [None, None]
    assert any("Steps to target are not known" in note and "1, 2 devices" in note for note in answer.notes)
