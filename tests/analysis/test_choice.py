"""Known curves and times give the known best batch size; the laws of a recommendation hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.choice import evening_factors, least, recommend_batch_size, resource_costs
from advisor.analysis.throughput import summarize
from advisor.records.intervals import Interval
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, Throughput
from advisor.records.recommendation import (
    Answers,
    Change,
    Objective,
    Prices,
    Recommendation,
    ResourceCost,
    Wish,
)
from advisor.records.scaling import BatchSizeResult, Crossing, FitOutcome, Observation, ScalingFit
from tests.analysis.evidence import description, fit, hyperbola, result, results, run

SIZES = [2**k for k in range(3, 11)]
FIXED_S, PER_EXAMPLE_S = 1e-3, 1e-5
MIN_STEPS, CRITICAL = 20.0, 100.0


def throughput(sizes: Sequence[int] = SIZES, factor: float = 1.0) -> Throughput:
    """Time per step 1 ms + 10 µs per example."""
    return summarize(run({size: factor * (FIXED_S + PER_EXAMPLE_S * size) for size in sizes}))


def advise(
    measured: Throughput,
    found: Sequence[BatchSizeResult],
    fitted: ScalingFit,
    prices: Prices | None = None,
    objective: Objective | None = Objective.TIME,
    workload: str = "",
    limits: Wish | None = None,
) -> tuple[Answers, Recommendation | None, tuple[ResourceCost, ...]]:
    wish = replace(limits or Wish(), objective=objective)
    return recommend_batch_size(description(), measured, found, fitted, prices or Prices(), wish, 0, workload)


def recommended(*arguments: object, **named: object) -> Recommendation:
    recommendation = advise(*arguments, **named)[1]  # type: ignore[arg-type]
    assert recommendation is not None
    return recommendation


def known() -> tuple[Throughput, list[BatchSizeResult], ScalingFit]:
    return throughput(), results(SIZES, MIN_STEPS, CRITICAL), fit(MIN_STEPS, CRITICAL)


def test_the_known_optimum_is_found() -> None:
    """sqrt(a B_c / b) = 100 lies between 64 and 128, which take the same time to 5 %."""
    found = recommended(*known())
    times = {size: (FIXED_S + PER_EXAMPLE_S * size) * hyperbola(size, MIN_STEPS, CRITICAL) for size in SIZES}
    assert found.batch_size in (64, 128)
    assert found.time_to_target_s.estimate == pytest.approx(times[found.batch_size], rel=0.01)
    assert found.stability > 0.8


@given(
    st.floats(1e-5, 1e-1), st.floats(1e-8, 1e-3), st.floats(2, 1000), st.floats(4, 4000), st.integers(0, 50)
)
@settings(max_examples=60, deadline=None)
def test_the_choice_is_never_far_from_the_best(
    fixed_s: float, per_example_s: float, min_steps: float, critical: float, seed: int
) -> None:
    measured = summarize(run({size: fixed_s + per_example_s * size for size in SIZES}))
    random = np.random.default_rng(seed)
    noisy = [
        result(size, hyperbola(size, min_steps, critical) * math.exp(random.normal(0, 0.03)), 0.06)
        for size in SIZES
    ]
    found = recommended(measured, noisy, fit(min_steps, critical))
    true = {size: (fixed_s + per_example_s * size) * hyperbola(size, min_steps, critical) for size in SIZES}
    assert true[found.batch_size] <= min(true.values()) * 1.05 * math.exp(4 * 0.03 * math.sqrt(2))


@given(st.floats(1e-3, 1e3), st.sampled_from(Objective))
@settings(max_examples=25, deadline=None)
def test_slower_hardware_takes_longer_and_changes_no_choice(factor: float, objective: Objective) -> None:
    found, fitted = results(SIZES, MIN_STEPS, CRITICAL, 0.1), fit(MIN_STEPS, CRITICAL)
    once = recommended(throughput(), found, fitted, objective=objective)
    scaled = recommended(throughput(factor=factor), found, fitted, objective=objective)
    assert scaled.batch_size == once.batch_size
    assert scaled.stability == pytest.approx(once.stability, abs=0.01)
    assert scaled.time_to_target_s.estimate == pytest.approx(factor * once.time_to_target_s.estimate)


@given(st.floats(0.01, 100), st.sampled_from(Objective))
@settings(max_examples=25, deadline=None)
def test_a_doubled_price_doubles_the_money_and_nothing_else(price: float, objective: Objective) -> None:
    once = recommended(*known(), prices=Prices(price), objective=objective)
    double = recommended(*known(), prices=Prices(2 * price), objective=objective)
    assert once.money is not None and double.money is not None
    assert double.money.estimate == pytest.approx(2 * once.money.estimate)
    assert (double.batch_size, double.time_to_target_s) == (once.batch_size, once.time_to_target_s)


def test_fewer_steps_everywhere_change_no_choice() -> None:
    measured, found, fitted = known()
    halved = recommended(measured, results(SIZES, MIN_STEPS / 2, CRITICAL), fit(MIN_STEPS / 2, CRITICAL))
    whole = recommended(measured, found, fitted)
    assert halved.batch_size == whole.batch_size
    assert halved.time_to_target_s.estimate == pytest.approx(whole.time_to_target_s.estimate / 2)


def test_the_same_seed_gives_the_same_answer() -> None:
    assert advise(*known()) == advise(*known())


def test_on_one_device_at_one_price_the_fastest_is_the_cheapest() -> None:
    answers, by_cost, _ = advise(*known(), prices=Prices(2.5, "EUR"), objective=Objective.COST)
    by_time = recommended(*known())
    assert by_cost is not None
    assert by_cost.batch_size == by_time.batch_size
    assert answers.cheapest_to_target == answers.fastest_to_target == by_time.batch_size
    assert "EUR" in by_cost.why and "the fastest is the cheapest" in by_cost.why


def test_on_one_device_all_objectives_have_one_answer_which_is_said() -> None:
    found = {one: recommended(*known(), prices=Prices(2.5, power_w=300), objective=one) for one in Objective}
    assert len({one.batch_size for one in found.values()}) == 1
    assert all(one.pareto == (one.batch_size,) for one in found.values())
    assert "the fastest is the cheapest" in found[Objective.BALANCED].why


@given(st.floats(0.5, 3), st.floats(0.5, 3), st.sampled_from([None, *Objective]))
@settings(max_examples=20, deadline=None)
def test_what_is_recommended_keeps_within_the_limits_or_says_that_nothing_does(
    time_share: float, money_share: float, objective: Objective | None
) -> None:
    """Wish are shares of what the best takes, whose interval ends some 16 % above its estimate."""
    measured, fitted = throughput(), fit(MIN_STEPS, CRITICAL)
    found, prices = results(SIZES, MIN_STEPS, CRITICAL, 0.15), Prices(2.5)
    best = recommended(measured, found, fitted, prices)
    assert best.money is not None
    limits = Wish(time_share * best.time_to_target_s.estimate, money_share * best.money.estimate)
    chosen = recommended(measured, found, fitted, prices, objective, limits=limits)
    ends = chosen.time_to_target_s.high, chosen.money and chosen.money.high
    within = ends[0] <= limits.deadline_s and ends[1] <= limits.max_cost  # type: ignore[operator]
    assert within is (chosen.unmet == "")
    assert within is (min(time_share, money_share) * best.time_to_target_s.estimate >= ends[0])
    assert chosen.unmet == "" or (chosen.why == chosen.unmet and "the fastest found is" in chosen.unmet)


def test_the_end_of_the_interval_decides_about_a_limit() -> None:
    """Batch size 64 is fastest by its estimate, and a seed of it failed, so that nothing bounds it."""
    measured, fitted = throughput([64, 256]), ScalingFit(FitOutcome.INSUFFICIENT, 0.2)
    unsure = result(64, 40.0)
    unsure = replace(unsure, steps_interval=Interval(40, 30, math.inf))
    found = recommended(measured, [unsure, result(256, 30.0)], fitted, objective=None, limits=Wish(0.2))
    assert (found.batch_size, found.objective) == (256, Objective.COST)
    assert "The upper end of its 95 % interval is within 200 ms (1" in found.why
    assert "no slower, but not within the limits" in found.why


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            Wish(1e-6),
            "within the deadline of 1.00 µs up to the upper end of its 95 % interval: the fastest",
        ),
        (
            Wish(max_cost=0),
            "within 0 EUR up to the upper end of its 95 % interval: the cheapest found is",
        ),
        (Wish(1e-6, 1e-9), "within the deadline of 1.00 µs and 1e-09 EUR up"),
    ],
)
def test_limits_that_nothing_keeps_are_told_with_what_comes_nearest(limits: Wish, words: str) -> None:
    found = recommended(*known(), prices=Prices(2.5, "EUR"), objective=None, limits=limits)
    assert words in found.unmet
    assert f"batch size {found.batch_size}" in found.unmet


def test_a_limit_chooses_what_to_be_best_at_unless_it_is_said() -> None:
    assert recommended(*known(), objective=None).objective is Objective.TIME
    assert recommended(*known(), objective=None, limits=Wish(9e9)).objective is Objective.COST
    priced = {"prices": Prices(1), "limits": Wish(9e9, 9e9)}
    assert recommended(*known(), objective=None, **priced).objective is Objective.TIME
    assert recommended(*known(), objective=Objective.BALANCED, **priced).objective is Objective.BALANCED


def test_consumption_falls_up_to_the_best_and_rises_beyond() -> None:
    found = recommended(throughput(), results(SIZES, MIN_STEPS, CRITICAL, 0.05), fit(MIN_STEPS, CRITICAL))
    assert [change.change for change in found.consumption] == list(Change)
    falls, same, rises = found.consumption
    assert (falls.smaller, rises.larger) == (8, 1024)
    assert same.smaller <= found.batch_size <= same.larger
    assert falls.ratio.high < 1 < rises.ratio.low


def test_upfront_costs_are_weighed_against_the_saving() -> None:
    priced = Prices(3600.0, upfront_costs={64: 5.0, 128: 5.0}, upfront_cost=None)
    found = recommended(*known(), prices=priced)
    assert [row.batch_size for row in found.break_even] == [64, 128]
    for row in found.break_even:
        assert row.against in (32, 256) and row.saving is not None and row.trainings is not None
        assert row.trainings.estimate * row.saving == pytest.approx(5)


def test_the_four_answers_are_kept_apart() -> None:
    answers, _, _ = advise(*known())
    assert answers.largest_feasible == 1024
    assert answers.fastest_per_example == 1024
    assert answers.critical == pytest.approx(20)
    assert answers.fastest_to_target in (64, 128)


def cost(batch_size: int, seconds: float, spread: float) -> ResourceCost:
    time_s = Interval(seconds, seconds / math.exp(spread), seconds * math.exp(spread))
    one = Interval(1, 1, 1)
    return ResourceCost(batch_size, one, time_s, time_s, time_s, None, None, False)


@pytest.mark.parametrize(
    ("seconds", "spread", "expected"),
    [
        ((1.02, 1.00, 1.01), 0.1, 8),  # within noise: the smaller
        ((1.02, 1.00, 1.01), 0.0, 16),  # without noise: the best
        ((1.02, 1.00, 1.01), 0.01, 16),  # noise of 0.7 % does not explain 2 %
        ((1.04, 1.00, 1.03), 9.0, 16),  # noise never justifies more than 2.5 %
        ((1.02, 1.00, 1.01), math.inf, 8),
    ],
)
def test_within_noise_the_smaller_batch_size_is_preferred(
    seconds: tuple[float, ...], spread: float, expected: int
) -> None:
    costs = [cost(size, time_s, spread) for size, time_s in zip((8, 16, 32), seconds, strict=True)]
    assert least(costs, lambda each: each.time_to_target_s).batch_size == expected


def test_noisy_steps_are_evened_out_by_the_curve() -> None:
    """The luckiest of several noisy sizes is a worse choice than what the curve makes of them."""
    random = np.random.default_rng(6)
    measured, noise, regret = throughput(), 0.12, {True: [], False: []}
    true = {size: (FIXED_S + PER_EXAMPLE_S * size) * hyperbola(size, MIN_STEPS, CRITICAL) for size in SIZES}
    for _ in range(150):
        found = [
            result(
                size, hyperbola(size, MIN_STEPS, CRITICAL) * math.exp(random.normal(0, noise)), 1.96 * noise
            )
            for size in SIZES
        ]
        for evened in (True, False):
            outcome = FitOutcome.OK if evened else FitOutcome.NOT_HYPERBOLIC
            chosen = recommended(measured, found, fit(MIN_STEPS, CRITICAL, outcome)).batch_size
            regret[evened].append(true[chosen] / min(true.values()) - 1)
    assert np.mean(regret[True]) < 0.01
    assert np.mean(regret[False]) > 0.04


def test_exact_steps_are_not_evened_out() -> None:
    costs = resource_costs(throughput(), results(SIZES, 99, 7), fit(MIN_STEPS, CRITICAL), Prices())
    assert set(evening_factors(costs, fit(MIN_STEPS, CRITICAL)).values()) == {1.0}


@pytest.mark.parametrize(
    ("half_width", "share"), [(1.96 * 0.4, 1.0), (1.96 * 0.2, 1.0), (1.96 * 0.1, 0.25), (0.0, 0.0)]
)
def test_noise_decides_how_far_steps_move_towards_the_curve(half_width: float, share: float) -> None:
    """All sizes lie a factor of exp(0.2) above the curve."""
    found = results(SIZES, math.exp(0.2) * MIN_STEPS, CRITICAL, half_width)
    costs = resource_costs(throughput(), found, fit(MIN_STEPS, CRITICAL), Prices())
    factors = evening_factors(costs, fit(MIN_STEPS, CRITICAL)).values()
    assert list(factors) == pytest.approx([math.exp(-0.2 * share)] * len(SIZES), rel=1e-3)


def test_sizes_that_were_not_tried_come_from_the_curve() -> None:
    measured, _, fitted = known()
    found = results([8, 1024], MIN_STEPS, CRITICAL)
    _, recommendation, costs = advise(measured, found, fitted)
    assert [each.batch_size for each in costs] == SIZES
    assert [each.batch_size for each in costs if not each.interpolated] == [8, 1024]
    assert costs[3].steps.estimate == pytest.approx(hyperbola(64, MIN_STEPS, CRITICAL), rel=0.02)
    assert recommendation is not None and recommendation.batch_size in (64, 128)
    assert "by the fitted curve" in recommendation.why
    assert any("was not trained" in caveat for caveat in recommendation.caveats)


@pytest.mark.parametrize("outcome", [FitOutcome.NOT_HYPERBOLIC, FitOutcome.INSUFFICIENT])
def test_an_untrusted_fit_fills_no_gaps(outcome: FitOutcome) -> None:
    found = results([8, 32, 128], MIN_STEPS, CRITICAL, 0.1)
    answers, recommendation, costs = advise(throughput(), found, fit(MIN_STEPS, CRITICAL, outcome))
    assert [each.batch_size for each in costs] == [8, 32, 128]
    assert answers.critical is None
    assert recommendation is not None and str(outcome) in recommendation.caveats
    assert 0 < recommendation.stability <= 1


def test_nothing_outside_the_range_that_reached_the_target_is_recommended() -> None:
    found = [result(8, None), *results([16, 32], MIN_STEPS, CRITICAL), result(1024, None)]
    _, recommendation, costs = advise(throughput(), found, fit(MIN_STEPS, CRITICAL))
    assert {each.batch_size for each in costs} == {16, 32}
    assert recommendation is not None and recommendation.batch_size == 32
    assert any("not reached at batch size 8 and 1,024" in caveat for caveat in recommendation.caveats)


def test_a_size_that_was_tried_and_failed_is_not_interpolated() -> None:
    found = [*results([8, 1024], MIN_STEPS, CRITICAL), result(64, None)]
    costs = resource_costs(throughput(), found, fit(MIN_STEPS, CRITICAL), Prices())
    assert 64 not in {each.batch_size for each in costs}


def test_the_saturation_batch_size_bounds_what_was_not_trained() -> None:
    measured = summarize(run({8: 1e-3, 16: 2e-3, 32: 4e-3, 64: 8e-3}))
    assert measured.saturation_batch_size == 8
    only_above = recommended(measured, results([32, 64], MIN_STEPS, CRITICAL), fit(MIN_STEPS, CRITICAL))
    assert only_above.batch_size == 32
    untrained = recommended(measured, results([8, 64], MIN_STEPS, 1e6), fit(MIN_STEPS, 1e6))
    assert untrained.batch_size in (8, 64)


def test_a_trained_size_above_saturation_that_is_faster_is_recommended() -> None:
    measured = summarize(run({16: 1e-3, 32: 1.22e-3, 64: 2.46e-3, 128: 5e-3}))
    assert measured.saturation_batch_size == 32
    found = recommended(
        measured,
        [result(16, 400.0), result(32, 190.0), result(64, 40.0), result(128, 30.0)],
        ScalingFit(FitOutcome.NOT_HYPERBOLIC, 0.2),
    )
    assert found.batch_size == 64


def test_without_a_size_that_reached_the_target_there_is_no_recommendation() -> None:
    answers, recommendation, costs = advise(
        throughput(), [result(8, None), result(64, None)], ScalingFit(FitOutcome.INSUFFICIENT, 0.2)
    )
    assert recommendation is None and costs == ()
    assert answers == Answers(largest_feasible=1024, fastest_per_example=1024)


def test_why_is_two_sentences_with_the_numbers() -> None:
    found = recommended(*known())
    assert found.why.count(". ") == 1
    assert found.why.startswith(
        f"Batch size {found.batch_size} reaches validation loss at most 0.15 in about "
    )
    assert "steps × " in found.why and " ms" in found.why
    assert "fewer steps, but each takes longer, so there is no reason to use it" in found.why
    assert "shorter steps, but more of them" in found.why


@pytest.mark.parametrize(
    ("argument", "expected"), [("", "advisor tune --batch 32"), ("a.py:w", "advisor tune a.py:w --batch 32")]
)
def test_next_is_the_command_to_type(argument: str, expected: str) -> None:
    found = results([32], MIN_STEPS, CRITICAL)
    assert recommended(throughput(), found, fit(MIN_STEPS, CRITICAL), workload=argument).next == expected


def caveats(measured: Throughput, found: Sequence[BatchSizeResult], fitted: ScalingFit) -> str:
    return "\n".join(recommended(measured, found, fitted).caveats)


def test_solid_evidence_has_few_caveats() -> None:
    measured = throughput([2**k for k in range(3, 14)])
    assert measured.saturation_batch_size is not None
    said = caveats(measured, results(SIZES, MIN_STEPS, CRITICAL, 0.05), fit(MIN_STEPS, CRITICAL))
    assert said == (
        "The hyperparameters were tuned at each batch size (learning_rate 0.008 to 1.02): "
        "another batch size needs its own."
    )


def changed(batch_size: int, **changes: object) -> list[BatchSizeResult]:
    steps = hyperbola(batch_size, MIN_STEPS, CRITICAL)
    others = [size for size in (8, 1024) if size != batch_size]
    return [
        *results(others, MIN_STEPS, CRITICAL),
        result(batch_size, steps, **changes),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"at_edge": True}, "lie at the edge of the range tried"),
        ({"seeds": 1}, "one fresh seed only"),
        ({"relative": 0.8}, "uncertain by a factor of 4.97"),
    ],
)
def test_weak_evidence_at_the_chosen_size_is_said(changes: Mapping[str, object], expected: str) -> None:
    assert expected in caveats(throughput([8, 64, 1024]), changed(64, **changes), fit(MIN_STEPS, CRITICAL))


def test_a_budget_of_examples_and_divergence_are_told_apart() -> None:
    given_up = replace(
        result(1024, None), observations=(Observation(1024, Crossing(None, 500.0, None)),), infeasible=3
    )
    diverged = replace(result(512, None), infeasible=8)
    said = caveats(
        throughput(), [*results([8, 64], MIN_STEPS, CRITICAL), given_up, diverged], fit(MIN_STEPS, CRITICAL)
    )
    assert "Every training diverged at batch size 512." in said
    assert "not reached at batch size 1,024 within 512,000 examples" in said
    assert "the regime of perfect scaling alone" in said


def test_every_edge_is_named() -> None:
    found = [
        result(8, 300.0, at_edge=True),
        *results([64], MIN_STEPS, CRITICAL),
        result(1024, 22.0, at_edge=True),
    ]
    said = caveats(throughput(), found, fit(MIN_STEPS, CRITICAL))
    assert "at batch size 8 and 1,024 lie at the edge" in said


def test_open_ends_are_said() -> None:
    largest = caveats(throughput(SIZES), results([8, 16, 32], MIN_STEPS, 1e4), fit(MIN_STEPS, 1e4))
    assert "32 is the largest that was tried" in largest
    assert "saturation was not seen" in largest
    slow = summarize(run({64: 1e-3, 128: 1.9e-3, 256: 3.6e-3}))
    smallest = caveats(slow, results([64, 128, 256], MIN_STEPS, 1.0), fit(MIN_STEPS, 1.0))
    assert "64 is the smallest that was tried" in smallest


def test_the_end_of_memory_is_no_open_end() -> None:
    measured = summarize(
        run({8: 1e-3, 16: 1e-3, 32: 1e-3}, BatchMeasurement(64, MeasurementOutcome.OUT_OF_MEMORY))
    )
    said = caveats(measured, results([8, 16, 32], MIN_STEPS, 1e4), fit(MIN_STEPS, 1e4))
    assert "largest that was tried" not in said


def test_a_curve_that_says_otherwise_is_named() -> None:
    said = caveats(throughput(), results(SIZES, MIN_STEPS, CRITICAL), fit(MIN_STEPS, 1e5))
    assert "put the optimum near 1,020" in said or "put the optimum near 1,024" in said
    assert "of resampled outcomes put batch size" in said


def test_a_critical_batch_size_beyond_the_tried_range_is_marked() -> None:
    fitted = fit(MIN_STEPS, CRITICAL)
    beyond = ScalingFit(**{**vars(fitted), "extrapolated": ("critical_batch_size",)})
    assert "is extrapolated" in caveats(*known()[:2], beyond)
