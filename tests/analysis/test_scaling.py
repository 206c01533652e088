import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.scaling import fit_scaling, predict_steps, steps_at
from advisor.records.intervals import Interval
from advisor.records.scaling import Crossing, FitOutcome, Observation, ScalingFit, SearchUncertainty
from benchmarks.fit_coverage import Setting, repeat, simulate

BATCH_SIZES = (8, 32, 128, 512, 2048, 8192)
NAMED = ("critical_batch_size", "half_efficiency_batch_size", "maximum_useful_batch_size")


def reached(batch_size: int, steps: float) -> Observation:
    return Observation(batch_size, Crossing(steps, steps * 0.99, steps * 1.01))


def never(batch_size: int, last_step: float) -> Observation:
    return Observation(batch_size, Crossing(None, last_step, None))


def fit(
    observations: Sequence[Observation],
    uncertainty: Sequence[SearchUncertainty] = (),
    overhead: float = 0.2,
    seed: int = 0,
    draws: int = 200,
) -> ScalingFit:
    tried = sorted({seen.batch_size for seen in observations})
    return fit_scaling(observations, uncertainty, tried, overhead, seed, draws)


def on_curve(
    parameters: tuple[float, float, float], batch_sizes: Sequence[int] = BATCH_SIZES, noise: float = 0.0
) -> list[Observation]:
    random = np.random.default_rng(11)
    return [
        reached(size, float(steps_at(parameters, size) * np.exp(noise * random.standard_normal())))
        for size in batch_sizes
        for _ in range(2)
    ]


def interval(fitted: ScalingFit, name: str) -> Interval:
    value = getattr(fitted, name)
    assert isinstance(value, Interval)
    return value


def as_numbers(value: Interval) -> tuple[float, float, float]:
    return value.estimate, value.low, value.high


@st.composite
def searches(draw: st.DrawFn) -> list[Observation]:
    """What searches with noise of all sizes find on curves that turn within the tried range.

    The smallest batch size may have run out of its budget in one or all of its runs.
    """
    setting = Setting(
        batch_sizes=draw(st.integers(4, 7)),
        sharpness=draw(st.floats(1.0, 1.6)),
        noise=draw(st.floats(0.02, 0.15)),
        turn=draw(st.floats(0.35, 0.65)),
    )
    found = simulate(setting, np.random.default_rng(draw(st.integers(0, 2**32)))).observations
    stopped = draw(st.integers(0, setting.seeds))
    return [never(seen.batch_size, 0.8 * steps_of(seen)) for seen in found[:stopped]] + found[stopped:]


def steps_of(seen: Observation) -> float:
    assert seen.crossing.steps is not None
    return seen.crossing.steps


# Laws


@settings(max_examples=25, deadline=None)
@given(searches(), st.floats(0.01, 1000))
def test_more_steps_throughout_scale_the_minimum_of_steps_alone(
    observations: list[Observation], factor: float
) -> None:
    def stretched(seen: Observation) -> Observation:
        steps, low, high = seen.crossing.steps, seen.crossing.low, seen.crossing.high
        if steps is None or high is None:
            return never(seen.batch_size, factor * low)
        return Observation(seen.batch_size, Crossing(factor * steps, factor * low, factor * high))

    before, after = fit(observations), fit([stretched(seen) for seen in observations])
    assert after.outcome is before.outcome
    assert np.allclose(
        as_numbers(interval(after, "min_steps")),
        [factor * value for value in as_numbers(interval(before, "min_steps"))],
        rtol=1e-3,
    )
    for name in NAMED:
        assert np.allclose(as_numbers(interval(after, name)), as_numbers(interval(before, name)), rtol=1e-3)


@settings(max_examples=25, deadline=None)
@given(searches(), st.integers(2, 1000))
def test_larger_batches_throughout_scale_every_batch_size_and_no_steps(
    observations: list[Observation], factor: int
) -> None:
    larger = [Observation(factor * seen.batch_size, seen.crossing) for seen in observations]
    before, after = fit(observations), fit(larger)
    assert after.outcome is before.outcome
    assert after.extrapolated == before.extrapolated
    for name in (*NAMED, "min_examples"):
        expected = [factor * value for value in as_numbers(interval(before, name))]
        assert np.allclose(as_numbers(interval(after, name)), expected, rtol=1e-3)
    assert np.allclose(
        as_numbers(interval(after, "min_steps")), as_numbers(interval(before, "min_steps")), rtol=1e-3
    )


@settings(max_examples=25, deadline=None)
@given(searches(), st.randoms())
def test_the_order_of_observations_is_irrelevant(observations: list[Observation], random) -> None:
    shuffled = list(observations)
    random.shuffle(shuffled)
    assert fit(shuffled) == fit(observations)


@settings(max_examples=25, deadline=None)
@given(searches())
def test_every_interval_holds_its_estimate(observations: list[Observation]) -> None:
    fitted = fit(observations)
    for name in (*NAMED, "min_steps", "min_examples"):
        value = interval(fitted, name)
        assert 0 <= value.low <= value.estimate <= value.high
    for batch_size in (1, 64, 10**6):
        steps = predict_steps(fitted, batch_size)
        assert steps.low <= steps.estimate <= steps.high


@settings(max_examples=25, deadline=None)
@given(searches(), st.floats(0.05, 0.4), st.floats(1.1, 2.0))
def test_a_larger_allowed_overhead_gives_a_larger_critical_batch_size(
    observations: list[Observation], overhead: float, factor: float
) -> None:
    strict, lax = fit(observations, overhead=overhead), fit(observations, overhead=factor * overhead)
    assert interval(strict, "critical_batch_size").estimate < interval(lax, "critical_batch_size").estimate
    assert strict.draws == lax.draws


@settings(max_examples=25, deadline=None)
@given(searches(), st.floats(0.1, 0.6))
def test_what_the_search_left_open_is_expected_to_be_half_gained(
    observations: list[Observation], slack: float
) -> None:
    sizes = {seen.batch_size for seen in observations}
    closed, open_search = fit(observations), fit(observations, [SearchUncertainty(b, slack) for b in sizes])
    middle = sorted(sizes)[len(sizes) // 2]
    before, after = predict_steps(closed, middle), predict_steps(open_search, middle)
    assert after.estimate == pytest.approx(before.estimate * math.exp(-slack / 2), rel=0.02)
    assert after.low < before.low
    assert after.high < before.high * 1.02


def test_the_seed_decides_the_draws_and_nothing_else() -> None:
    observations = on_curve((100, 300, 1.2), noise=0.1)
    first, again, other = fit(observations), fit(observations), fit(observations, seed=1)
    assert first == again
    assert other.draws != first.draws
    assert other.estimate == first.estimate


# Recovery


@pytest.mark.parametrize("parameters", [(100.0, 300.0, 1.2), (3.5, 40.0, 1.2), (40_000.0, 1_000.0, 1.2)])
def test_a_curve_without_noise_is_found(parameters: tuple[float, float, float]) -> None:
    fitted = fit(on_curve(parameters))
    assert fitted.estimate == pytest.approx(parameters, rel=0.01)
    assert fitted.outcome is FitOutcome.OK
    assert fitted.residual_log_rms == pytest.approx(0, abs=1e-3)
    assert interval(fitted, "min_examples").estimate == pytest.approx(parameters[0] * parameters[1], rel=0.01)


@pytest.mark.parametrize("sharpness", [0.9, 1.0, 1.5, 1.8])
def test_many_batch_sizes_tell_how_sharp_the_curve_turns(sharpness: float) -> None:
    fitted = fit(on_curve((100, 1000, sharpness), [2**power for power in range(2, 18)], noise=0.02))
    assert fitted.sharpness == pytest.approx(sharpness, rel=0.08)


def test_the_prior_alone_spreads_a_sharpness_that_three_batch_sizes_cannot_tell() -> None:
    fitted = fit(on_curve((100, 300, 1.0), (8, 256, 8192), noise=0.1), draws=1000)
    sharpness = np.array(fitted.draws)[:, 2]
    assert np.quantile(sharpness, 0.1) < 1.0
    assert np.quantile(sharpness, 0.9) > 1.3


@pytest.mark.parametrize(("sharpness", "batch_sizes", "factor"), [(1.0, 6, 4), (1.5, 5, 4), (1.6, 8, 2)])
def test_intervals_cover_the_truth_and_stay_useful(sharpness: float, batch_sizes: int, factor: int) -> None:
    tallies = repeat(Setting(batch_sizes, factor, sharpness), repetitions=50, seed=5)
    assert np.mean([tally.covered for tally in tallies]) >= 0.88
    assert np.mean([tally.half_covered for tally in tallies]) >= 0.88
    assert np.median([tally.ratio for tally in tallies]) < 7


def test_little_noise_gives_narrow_intervals() -> None:
    tallies = repeat(Setting(8, 4, 1.2, noise=0.02, slack=0.0), repetitions=20, seed=3)
    assert np.median([tally.ratio for tally in tallies]) < 1.5


def test_predicted_steps_cover_batch_sizes_between_those_tried() -> None:
    covered = []
    for number in range(40):
        found = simulate(Setting(6, 4, 1.3, slack=0.0), np.random.default_rng(number))
        fitted = fit(found.observations, draws=300)
        steps = predict_steps(fitted, 256)
        covered.append(steps.low <= steps_at(found.truth, 256) <= steps.high)
    assert np.mean(covered) >= 0.9


# Runs that never reached the target


@settings(max_examples=15, deadline=None)
@given(searches(), st.integers(0, 3), st.floats(0.0, 0.05))
def test_a_run_that_stopped_far_below_the_curve_changes_nothing(
    observations: list[Observation], position: int, share: float
) -> None:
    before = fit(observations, draws=20)
    size = sorted({seen.batch_size for seen in observations})[position]
    stopped = never(size, share * predict_steps(before, size).estimate)
    assert fit([*observations, stopped], draws=20).estimate == pytest.approx(before.estimate, rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(searches(), st.integers(0, 3), st.floats(1.2, 100.0))
def test_a_run_that_stopped_above_the_curve_lifts_it_there_and_two_lift_it_more(
    observations: list[Observation], position: int, factor: float
) -> None:
    size = sorted({seen.batch_size for seen in observations})[position]
    before = predict_steps(fit(observations, draws=20), size).estimate
    stopped = never(size, factor * before)
    once, twice = (
        predict_steps(fit([*observations, *[stopped] * runs], draws=20), size).estimate for runs in (1, 2)
    )
    assert before < once < twice


def test_a_run_that_stopped_long_before_the_curve_says_nothing() -> None:
    observations = on_curve((100, 300, 1.2), noise=0.05)
    added = [never(8, 10), never(2048, 3), never(512, 0)]
    assert fit(observations + added).estimate == pytest.approx(fit(observations).estimate, rel=1e-3)


def test_runs_that_stopped_beyond_the_curve_raise_it() -> None:
    observations = on_curve((100, 300, 1.2), noise=0.05)
    raised = fit([*observations, *(never(2048, 200) for _ in range(3))])
    assert predict_steps(raised, 2048).estimate > 1.05 * predict_steps(fit(observations), 2048).estimate


def test_small_batches_that_ran_out_of_budget_still_show_perfect_scaling() -> None:
    truth = (100.0, 300.0, 1.2)
    large = on_curve(truth, (128, 512, 2048, 8192))
    small = [never(size, 0.8 * float(steps_at(truth, size))) for size in (2, 8, 32) for _ in range(2)]
    without, with_them = fit(large, draws=1000), fit(large + small, draws=1000)
    assert predict_steps(with_them, 2).low > predict_steps(without, 2).low
    assert with_them.estimate == pytest.approx(truth, rel=0.1)


# Outcomes


def test_fewer_than_three_batch_sizes_that_arrived_are_insufficient() -> None:
    few = [reached(8, 1000), reached(32, 300), never(128, 500), never(512, 500)]
    for observations in ([], few[:1], few[2:], few):
        fitted = fit_scaling(observations, [], [8, 32, 128, 512], 0.2, seed=0)
        assert fitted.outcome is FitOutcome.INSUFFICIENT
        assert {getattr(fitted, name) for name in (*NAMED, "min_steps", "estimate")} == {None}
    with pytest.raises(ValueError, match="at least three"):
        predict_steps(fitted, 8)


def test_perfect_scaling_throughout_gives_a_lower_bound() -> None:
    fitted = fit(on_curve((1, 1e6, 1.2), noise=0.05))
    assert fitted.outcome is FitOutcome.LOWER_BOUND
    for name in NAMED:
        assert interval(fitted, name).high == math.inf
        assert interval(fitted, name).low > 0
    assert interval(fitted, "min_steps").low == 0
    assert interval(fitted, "min_examples").high < 1.3e6
    assert {"half_efficiency_batch_size", "maximum_useful_batch_size"} <= set(fitted.extrapolated)


def test_no_perfect_scaling_at_all_gives_an_upper_bound() -> None:
    fitted = fit(on_curve((100, 1, 1.2), noise=0.05))
    assert fitted.outcome is FitOutcome.UPPER_BOUND
    for name in NAMED:
        assert interval(fitted, name).low == 0
        assert interval(fitted, name).high < math.inf
    assert interval(fitted, "min_examples").low == 0
    assert 90 < interval(fitted, "min_steps").estimate < 110
    assert "critical_batch_size" in fitted.extrapolated


@pytest.mark.parametrize(
    ("turn", "outcome"),
    [
        (40, FitOutcome.OK),
        (3000, FitOutcome.OK),
        (5000, FitOutcome.LOWER_BOUND),
        (12, FitOutcome.UPPER_BOUND),
    ],
)
def test_a_turn_within_a_factor_of_two_of_the_end_of_the_range_is_a_bound(
    turn: float, outcome: FitOutcome
) -> None:
    assert fit(on_curve((100, turn, 1.2), noise=0.01)).outcome is outcome


def test_batch_sizes_that_were_tried_in_vain_count_as_tried() -> None:
    observations = on_curve((100, 300, 1.2), (8, 32, 128, 512, 1024))
    assert "maximum_useful_batch_size" in fit(observations).extrapolated
    tried = [8, 32, 128, 512, 1024, 4096]
    assert fit_scaling(observations, [], tried, 0.2, seed=0).extrapolated == ()


@pytest.mark.parametrize(
    "factors",
    [
        (2.5, 1.7, 1.0, 1.0, 1.0, 1.0),  # examples to target fall before they rise
        (1.0, 1.0, 1.0, 1.0, 1.7, 4.0),  # steps to target rise again
        (1.0, 1.0, 2.5, 1.0, 1.0, 1.0),  # one batch size was tuned badly
    ],
)
def test_what_is_no_hyperbola_is_called_so_and_still_fitted(factors: tuple[float, ...]) -> None:
    by_size = dict(zip(BATCH_SIZES, factors, strict=True))
    bent = [
        reached(seen.batch_size, (seen.crossing.steps or 0) * by_size[seen.batch_size])
        for seen in on_curve((100, 300, 1.2), noise=0.05)
    ]
    fitted = fit(bent)
    assert fitted.outcome is FitOutcome.NOT_HYPERBOLIC
    assert fitted.estimate is not None


def test_a_deviation_that_the_search_left_open_is_no_lack_of_fit() -> None:
    bent = [
        replace(seen, crossing=reached(0, (seen.crossing.steps or 0) * 2.5).crossing)
        if seen.batch_size == 128
        else seen
        for seen in on_curve((100, 300, 1.2), noise=0.05)
    ]
    assert fit(bent).outcome is FitOutcome.NOT_HYPERBOLIC
    assert fit(bent, [SearchUncertainty(128, 1.0)]).outcome is FitOutcome.OK


def test_noise_alone_is_seldom_called_a_lack_of_fit() -> None:
    tallies = repeat(Setting(6, 4, 1.3, noise=0.17), repetitions=40, seed=9)
    assert sum(tally.outcome is FitOutcome.NOT_HYPERBOLIC for tally in tallies) <= 2


# Observations


@settings(max_examples=15, deadline=None)
@given(searches(), st.integers(1, 3))
def test_more_runs_of_one_batch_size_draw_the_curve_to_their_middle(
    observations: list[Observation], position: int
) -> None:
    size = sorted({seen.batch_size for seen in observations})[position]
    runs = [seen for seen in observations if seen.batch_size == size]
    middle = float(np.mean([np.log(steps_of(seen)) for seen in runs]))
    few, many = (
        abs(np.log(predict_steps(fit(observations + runs * copies, draws=20), size).estimate) - middle)
        for copies in (0, 50)
    )
    assert many < few + 1e-3
    assert many < 0.05


def test_one_wild_run_hardly_moves_the_fit() -> None:
    observations = [seen for _ in range(3) for seen in on_curve((100, 300, 1.2), noise=0.05)]
    wild = [
        *observations[1:],
        reached(observations[0].batch_size, 20 * (observations[0].crossing.steps or 0)),
    ]
    assert fit(wild).estimate == pytest.approx(fit(observations).estimate, rel=0.06)


def test_wide_brackets_widen_the_intervals() -> None:
    def looked_at_every(factor: float) -> ScalingFit:
        return fit(
            [
                replace(seen, crossing=replace(seen.crossing, low=steps / factor, high=steps * factor))
                for seen in on_curve((100, 300, 1.2), noise=0.02)
                if (steps := seen.crossing.steps)
            ],
            draws=1000,
        )

    narrow, wide = (interval(looked_at_every(factor), "critical_batch_size") for factor in (1.01, 1.6))
    assert wide.high / wide.low > 1.3 * narrow.high / narrow.low


def test_a_first_evaluation_that_passes_is_uncertain_and_no_fault() -> None:
    observations = on_curve((2, 300, 1.2))
    first = Observation(32768, Crossing(1.0, 0.0, 1.0))
    assert fit([*observations, first]).estimate == pytest.approx((2, 300, 1.2), rel=0.2)


def test_a_crossing_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        fit([*on_curve((2, 300, 1.2)), Observation(64, Crossing(0.0, 0.0, 1.0))])
