"""Laws of what-if over device counts and prices."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.choice import MOST_GIVEN_UP, recommend_batch_size
from advisor.analysis.plan import DeviceTiming, measured_range, pareto_front, what_if
from advisor.analysis.scaling import predict_steps
from advisor.analysis.throughput import summarize
from advisor.errors import InconclusiveError
from advisor.records.description import Configuration
from advisor.records.measurement import Throughput
from advisor.records.plan import DeviceOption, Extrapolation, Scenario
from advisor.records.recommendation import Advice, Objective, Prices, Spent, Wish
from advisor.records.scaling import BatchSizeResult, FitOutcome, ScalingFit
from tests.analysis.evidence import description, fit, result, results, run

SIZES = [2**power for power in range(3, 11)]
PRICES = Prices(2.5, "EUR", 350)
MIN_STEPS, CRITICAL = 20.0, 100.0
EXACT = 1.000001
PLENTY = 10**6

seconds = st.floats(1e-5, 1e-1)
examples = st.floats(2, 4000)


def throughput(
    sizes: Sequence[int] = SIZES, fixed_s: float = 1e-3, per_example_s: float = 1e-5, devices: int = 1
) -> Throughput:
    """Time per step exactly on the line, measured on ``devices`` devices."""
    measured = run({size: fixed_s + per_example_s * size for size in sizes})
    return summarize(replace(measured, configuration=Configuration(devices=devices)))


def advice(
    measured: Throughput, found: Sequence[BatchSizeResult] | None = None, fitted: ScalingFit | None = None
) -> Advice:
    found = results(SIZES, MIN_STEPS, CRITICAL) if found is None else found
    fitted = fitted or fit(MIN_STEPS, CRITICAL)
    answers, recommendation, costs = recommend_batch_size(
        description(), measured, found, fitted, PRICES, Wish(objective=Objective.TIME), 0, ""
    )
    return Advice(
        description(), measured, PRICES, tuple(found), fitted, costs, answers, recommendation, Spent()
    )


KNOWN = advice(throughput())


def plan(known: Advice, *devices: int, share: float = 0.0, prices: Prices = PRICES) -> tuple[Scenario, ...]:
    timing = DeviceTiming(known.throughput, share, PLENTY)
    return what_if(timing, known, [DeviceOption(number) for number in devices], prices)


def time_s(scenario: Scenario) -> float:
    assert scenario.cost is not None
    return scenario.cost.time_to_target_s.estimate


def hours(scenario: Scenario) -> float:
    assert scenario.cost is not None
    return scenario.cost.device_hours.estimate


@given(seconds, st.floats(1e-8, 1e-3), examples)
@settings(max_examples=8)
def test_the_measured_devices_give_the_recommendation(
    fixed_s: float, per_example_s: float, critical: float
) -> None:
    known = advice(
        throughput(SIZES, fixed_s, per_example_s),
        results(SIZES, MIN_STEPS, critical),
        fit(MIN_STEPS, critical),
    )
    (one,) = plan(known, 1)
    found = known.recommendation
    assert found is not None and one.cost is not None
    assert one.batch_size == found.batch_size
    assert (one.cost.time_to_target_s, one.cost.device_hours) == (found.time_to_target_s, found.device_hours)
    assert one.cost.money == found.money
    assert (one.extrapolated, one.speed_up, one.efficiency) == ((), 1, 1)


@given(seconds, st.floats(1e-8, 1e-3), st.sampled_from([2, 4, 8]))
@settings(max_examples=8)
def test_without_a_bend_and_synchronization_devices_are_worth_their_number(
    fixed_s: float, per_example_s: float, devices: int
) -> None:
    straight = 1e9
    known = advice(
        throughput(SIZES, fixed_s, per_example_s),
        results(SIZES, MIN_STEPS, straight),
        fit(MIN_STEPS, straight, FitOutcome.LOWER_BOUND),
    )
    one, many = plan(known, 1, devices)
    assert many.efficiency == pytest.approx(1, abs=0.03)
    assert time_s(many) == pytest.approx(time_s(one) / devices, rel=0.03)


@given(seconds, st.floats(1e-8, 1e-3), examples, st.floats(0, 0.9))
@settings(max_examples=12)
def test_more_devices_are_faster_and_never_cheaper(
    fixed_s: float, per_example_s: float, critical: float, share: float
) -> None:
    known = advice(
        throughput(SIZES, fixed_s, per_example_s),
        results(SIZES, MIN_STEPS, critical),
        fit(MIN_STEPS, critical),
    )
    found = plan(known, 1, 2, 4, 8, share=share)
    for fewer, more in pairwise(found[1:]):
        assert time_s(more) <= time_s(fewer) * MOST_GIVEN_UP * EXACT
    for fewer, more in pairwise(found):
        shares_are_measured = Extrapolation.TIME_PER_STEP not in more.extrapolated
        assert hours(more) >= hours(fewer) / MOST_GIVEN_UP / EXACT or not shares_are_measured


@given(st.floats(0, 0.9), st.floats(0, 0.09))
@settings(max_examples=20)
def test_synchronization_slows_several_devices_alone(share: float, more: float) -> None:
    without, some, much = (plan(KNOWN, 1, 4, share=part) for part in (0.0, share, share + more))
    assert without[0] == some[0] == much[0]
    assert time_s(some[1]) == pytest.approx(time_s(without[1]) / (1 - share))
    assert time_s(much[1]) >= time_s(some[1]) / EXACT


@given(st.floats(0.01, 100), st.floats(1, 10))
@settings(max_examples=20)
def test_a_higher_price_raises_money_in_proportion_and_nothing_else(price: float, factor: float) -> None:
    cheap, dear = (plan(KNOWN, 1, 4, prices=Prices(each)) for each in (price, factor * price))
    for low, high in zip(cheap, dear, strict=True):
        assert low.cost and high.cost and low.cost.money and high.cost.money
        assert high.cost.money.estimate == pytest.approx(factor * low.cost.money.estimate)
        assert replace(high.cost, money=None) == replace(low.cost, money=None)
        assert high.on_pareto_front == low.on_pareto_front


def test_an_option_s_own_price_replaces_the_common_one() -> None:
    options = [DeviceOption(1), DeviceOption(1, 0.5)]
    common, own = what_if(DeviceTiming(KNOWN.throughput, 0, PLENTY), KNOWN, options, PRICES)
    assert common.cost and own.cost and common.cost.money and own.cost.money
    assert common.cost.money.estimate == pytest.approx(5 * own.cost.money.estimate)
    assert (common.option.price_per_device_hour, own.option.price_per_device_hour) == (2.5, 0.5)
    assert (common.on_pareto_front, own.on_pareto_front) == (False, True)


def test_the_pareto_set_is_by_money_only_where_all_have_it() -> None:
    options = [DeviceOption(1, 100.0), DeviceOption(2, 1.0), DeviceOption(4, 1.0)]
    found = what_if(DeviceTiming(KNOWN.throughput, 0, PLENTY), KNOWN, options, PRICES)
    assert [scenario.on_pareto_front for scenario in found] == [False, True, True]
    costs = [scenario.cost for scenario in found]
    unpriced = replace(costs[1], money=None)  # type: ignore[type-var]
    assert pareto_front([costs[0], None, unpriced, costs[2]]) == [True, False, True, True]


def test_each_device_s_share_of_the_batch_decides_the_time_and_the_whole_batch_the_steps() -> None:
    (two,) = plan(KNOWN, 2)
    assert two.cost is not None
    share = two.batch_size / 2
    assert two.time_per_step_s.estimate == pytest.approx(1e-3 + 1e-5 * share, rel=1e-3)
    steps = predict_steps(KNOWN.fit, two.batch_size).estimate
    assert time_s(two) == pytest.approx(steps * two.time_per_step_s.estimate, rel=1e-3)
    assert two.throughput_examples_per_s.estimate == pytest.approx(
        two.batch_size / two.time_per_step_s.estimate
    )


def test_what_lies_outside_is_marked() -> None:
    known = advice(throughput([64, 128, 256]), results([64, 128, 256], MIN_STEPS, 1e4), fit(MIN_STEPS, 1e4))
    one, four = plan(known, 1, 4)
    assert one.extrapolated == ()
    assert four.batch_size > 256
    assert four.extrapolated == (Extrapolation.DEVICES, Extrapolation.STEPS)
    bent = advice(throughput([64, 128, 256]), results([64, 128, 256], MIN_STEPS, 1), fit(MIN_STEPS, 1))
    (few,) = plan(bent, 4)
    assert few.batch_size == 64
    assert few.extrapolated == (Extrapolation.DEVICES, Extrapolation.TIME_PER_STEP)


def test_the_residual_of_the_line_and_the_draws_of_the_curve_are_in_the_interval() -> None:
    measured = throughput()
    assert measured.time_model is not None
    rough = replace(measured, time_model=replace(measured.time_model, residual_log_rms=0.3))
    line, wide = (DeviceTiming(each, 0, PLENTY).time_per_step_s(8, 8) for each in (measured, rough))
    assert line and wide and line.estimate == wide.estimate
    assert line.high / line.low < 1.05 and wide.high / wide.low == pytest.approx(3.24, rel=0.01)
    (four,) = plan(advice(measured, results([8, 16, 32], MIN_STEPS, 1e4), fit(MIN_STEPS, 1e4)), 4)
    assert four.cost is not None and Extrapolation.STEPS in four.extrapolated
    assert four.cost.steps == predict_steps(fit(MIN_STEPS, 1e4), four.batch_size)


def test_a_batch_size_that_missed_the_target_bars_those_beyond() -> None:
    found = [*results([8, 16, 32, 64], MIN_STEPS, 1e4), result(128, None)]
    (eight,) = plan(advice(throughput(), found, fit(MIN_STEPS, 1e4)), 8)
    assert eight.batch_size == 64


def test_no_batch_takes_more_than_the_training_examples() -> None:
    known = advice(throughput(), results(SIZES, MIN_STEPS, 1e4), fit(MIN_STEPS, 1e4))
    timing = DeviceTiming(known.throughput, 0, 1397)
    (eight,) = what_if(timing, known, [DeviceOption(8)], PRICES)
    assert 512 <= eight.batch_size <= 1397
    with pytest.raises(InconclusiveError, match=r"2,000 devices could share.*1,397 examples"):
        what_if(timing, None, [DeviceOption(2000)], PRICES)


def test_without_a_trusted_curve_only_trained_batch_sizes_are_looked_at() -> None:
    untrusted = ScalingFit(FitOutcome.NOT_HYPERBOLIC, 0.2)
    known = advice(throughput(), results([16, 64], MIN_STEPS, 1e4), untrusted)
    two, three = plan(known, 2, 3)
    assert two.batch_size == 64
    assert three.cost is None and three.speed_up is None and not three.on_pareto_front


def test_synchronization_measured_with_several_devices_is_taken_off_for_one() -> None:
    timing = DeviceTiming(throughput(devices=4), 0.2, PLENTY)
    measured, one, eight = (
        timing.time_per_step_s(devices, size) for devices, size in ((4, 256), (1, 64), (8, 512))
    )
    assert measured and one and eight
    assert one.estimate == pytest.approx(0.8 * measured.estimate)
    assert eight.estimate == pytest.approx(measured.estimate)
    known = measured_range(timing.throughput, None)
    assert (known.devices, known.per_device, known.trained) == (4, (2, 256), None)


def test_without_advice_there_is_throughput_alone() -> None:
    measured = throughput()
    timing = DeviceTiming(measured, 0.5, PLENTY)
    one, four = what_if(timing, None, [DeviceOption(1), DeviceOption(4)], Prices())
    assert one.cost is None and one.speed_up is None and not one.on_pareto_front
    assert four.batch_size == 4 * one.batch_size
    ratio = four.throughput_examples_per_s.estimate / one.throughput_examples_per_s.estimate
    assert ratio == pytest.approx(4 * 0.5)
    assert four.extrapolated == (Extrapolation.DEVICES,)


def test_too_few_sizes_for_a_line_are_told() -> None:
    timing = DeviceTiming(throughput([66, 130], devices=4), 0, PLENTY)
    with pytest.raises(InconclusiveError, match=r"that 3 devices could share.*advisor measure"):
        what_if(timing, None, [DeviceOption(3)], Prices())
