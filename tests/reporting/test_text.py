"""What a person reads says what was found, fits 80 columns, and is plain unless asked otherwise."""

import re
from dataclasses import replace

import pytest

from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Prices, Wish
from advisor.reporting.text import (
    advice_text,
    report_text,
    rule_of_thumb_text,
    spending_text,
    studies_text,
    throughput_text,
    tuning_text,
)
from tests.reporting import evidence

STUDY = evidence.study()


def words(text: str) -> str:
    """Return the text in one line, so that line breaks do not matter."""
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def unlike_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what would tempt a library to draw for another terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm-256color")


ALL_TEXTS = {
    "throughput": throughput_text(evidence.throughput()),
    "advice": advice_text(evidence.advice()),
    "thumb": rule_of_thumb_text(evidence.thumb()),
    "unmet": advice_text(evidence.advice(limits=Wish(1e-3))),
    "upfront": advice_text(evidence.advice(Prices(2.5, "EUR", 350, 10.0, {128: 3.0}))),
    "hopeless": advice_text(evidence.hopeless_advice()),
    "tuning": tuning_text(evidence.tuning()),
    "report": report_text(evidence.report()),
    "empty": report_text(evidence.empty_report()),
    "spending": spending_text(evidence.spending()),
    "study": studies_text([STUDY]),
    "studies": studies_text([STUDY, evidence.study("digits-mlp/0123abcd/steps-to-target/b1024", "x")]),
}


@pytest.mark.parametrize("name", ALL_TEXTS)
def test_every_text_is_plain_and_fits_80_columns(name: str) -> None:
    text = ALL_TEXTS[name]
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("\n") and not any(line.endswith(" ") for line in text.splitlines())


def test_color_is_there_when_asked_for() -> None:
    colored = advice_text(evidence.advice(), color=True)
    assert "\x1b[1m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == advice_text(evidence.advice()).split()


def test_throughput_has_every_size_and_the_limits() -> None:
    text = words(throughput_text(evidence.throughput()))
    assert "64 163,000 392 µs (374–411) +51 %, 76 % 200 MiB ok" in text
    assert "2,048 data limited" in text
    assert "Peak memory: resident, with all libraries;" in text
    assert "largest feasible batch size 1,024" in text
    assert "saturation batch size not reached" in text
    assert "200 µs + 3.00 µs per example" in text
    assert "throughput still grew at the largest batch size" in text


def test_the_verdict_its_reasons_and_what_helps_are_told() -> None:
    text = words(throughput_text(evidence.hungry_throughput()))
    assert "64 10,700 6.00 ms (5.66–6.36) +67 %, 83 % 1.00 GiB near limit" in text
    assert (
        "The input pipeline limits training: at batch size 64 a step waits for data 67 % of its time." in text
    )
    assert "Shares of a step, which may overlap: compute 33 %, input 67 %." in text
    assert (
        "- Cache the dataset. Measured: 3.00 × as fast (6.00 ms → 2.00 ms per step). Mind the memory." in text
    )
    assert "map load (data.py:7) 90.0 µs 90 %" in text
    assert "The model never reads x['blob'] (75 % of each example's bytes)" in text
    assert "batch size xla mixed_precision" in text
    assert "32 2.00 (1.83–2.18) did not run" in text
    assert "- mixed_precision: Batch size 16: no bfloat16 here." in text


def test_large_numbers_still_fit() -> None:
    measured = evidence.throughput()
    slow = Interval(123.4 * 60, 100.2 * 60, 156.7 * 60)
    rows = [
        replace(row, batch_size=row.batch_size * 4096, time_per_step_s=slow, peak_memory_bytes=99 * 2**30)
        for row in measured.table
    ]
    large: Throughput = replace(measured, table=tuple(rows))
    text = throughput_text(large)
    assert max(map(len, text.splitlines())) <= 80
    assert "99.0 GiB" in text
    assert "123 min (100–157)" in text or "2.06 h (1.67–2.61)" in text


def test_advice_begins_with_the_answer_its_certainty_and_what_is_next() -> None:
    advice = evidence.advice()
    assert advice.recommendation is not None
    text = words(advice_text(advice))
    why, sure, following = (
        text.index(found) for found in (advice.recommendation.why, "How sure:", advice.recommendation.next)
    )
    assert why == 0 < sure < following < text.index("Steps to target (")
    assert "with 95 % confidence it takes 14.5 ms to 19.9 ms" in text
    assert "advisor tune digits.py --batch 64" in text
    assert all(words(caveat) in text for caveat in advice.recommendation.caveats)


def test_advice_keeps_the_answers_and_the_named_batch_sizes_apart() -> None:
    text = words(advice_text(evidence.advice()))
    assert "the largest that fits 1,024" in text
    assert "the fastest per example 1,024 highest throughput, examples/s" in text
    assert "the end of perfect scaling 18 critical: examples 20 % above the fewest" in text
    assert "the fastest to the target 64 least time per step × steps" in text
    assert "the cheapest to the target 64 least EUR to the target" in text
    assert "critical batch size 18 (17–19) examples 20 % above the fewest" in text
    assert "half-efficiency batch size 90 (86–94) examples twice the fewest" in text
    assert "maximum useful batch size 900 (855–945) steps 10 % above the fewest" in text
    assert "so that the fastest to the target is the cheapest, and time, cost and balanced have one" in text


def test_advice_marks_what_is_interpolated_missing_or_extrapolated() -> None:
    advice = evidence.advice()
    text = words(advice_text(replace(advice, fit=replace(advice.fit, extrapolated=("critical_batch_size",)))))
    assert "32* 296 µs" in text and "not trained; steps from the fitted curve" in text
    assert "512 not reached" in text
    assert "20 % above the fewest; extrapolated" in text


def test_money_and_energy_are_shown_only_with_a_price() -> None:
    assert "EUR" in advice_text(evidence.advice()) and "kWh" in advice_text(evidence.advice())
    without = advice_text(evidence.advice(Prices()))
    assert "USD" not in without and "kWh" not in without


def test_advice_tells_what_a_larger_batch_does_to_consumption() -> None:
    text = words(advice_text(evidence.advice()))
    assert "From batch size 8 to 64 a larger batch reduces resource consumption: × 0.344 (" in text
    assert "From batch size 64 to 256 a larger batch increases resource consumption: × 1.39 (" in text
    assert "fewer steps, but each takes longer, so there is no reason to use it" in text


def test_a_trade_off_names_the_pareto_set() -> None:
    advice = evidence.advice()
    assert advice.recommendation is not None
    several = replace(advice, recommendation=replace(advice.recommendation, pareto=(32, 64)))
    text = words(advice_text(several))
    assert "Nothing is better in every resource than batch size 32, 64 (the Pareto set)." in text
    assert "at one price" not in text


def test_advice_tells_when_a_change_has_paid_off() -> None:
    named = words(advice_text(evidence.advice(Prices(2.5, "EUR", upfront_costs={128: 3.0, 999: 4.0}))))
    assert (
        "Changing to batch size 128 costs 3.00 EUR once: against 64 it never pays, at 6.42e-07 EUR" in named
    )
    assert "size 999 costs 4.00 EUR once: what it saves is not known" in named
    every = words(advice_text(evidence.advice(Prices(2.5, "EUR", upfront_cost=10.0))))
    assert (
        "Changing to batch size 64 costs 10.0 EUR once: against 8, saving 2.25e-05 EUR a training, it"
        in every
    )
    assert "it has paid off after 444,000 (" in every and "; against 256, saving" in every
    sizes = dict.fromkeys((8, 16, 32, 64, 128, 256), 1.0)
    all_named = words(advice_text(evidence.advice(Prices(2.5, upfront_costs=sizes))))
    assert "every other batch size has an upfront cost too" in all_named


def test_an_unmet_limit_comes_first_and_nothing_is_sure() -> None:
    text = words(advice_text(evidence.advice(limits=Wish(1e-3))))
    assert text.startswith("No batch size is within the deadline of 1.00 ms up to the upper end of its 95 %")
    assert "How sure" not in text and "batch size 64 with 17.0 ms (14.5–19.9)" in text


def test_a_rule_of_thumb_is_called_so() -> None:
    text = words(rule_of_thumb_text(evidence.thumb()))
    assert text.startswith("Rule of thumb: Batch size 1,024 is the largest that ran")
    assert "This is a rule of thumb and not an answer: no training was done" in text
    assert "advisor recommend digits.py" in text and "largest feasible batch size 1,024" in text


def test_advice_without_an_answer_says_so() -> None:
    text = words(advice_text(evidence.hopeless_advice()))
    assert text.startswith(
        "No batch size is recommended: none that was tried reached validation loss at most"
    )
    assert "none reached it" in text


def test_tuning_names_the_best_trial_and_the_health() -> None:
    text = words(tuning_text(evidence.tuning()))
    assert "trial 7: validation loss 0.08123 at step 312, which meets the target" in text
    assert "learning_rate 0.0312" in text and "activation [relu]" in text
    assert "/work/advisor-artifacts/digits/trial-7.npz" in text
    assert "3 of 20 trials diverged" in text and "17 complete, 3 infeasible" in text
    assert "gave a finite validation loss" in words(tuning_text(evidence.tuning(best=False)))


def test_a_missed_target_is_said() -> None:
    result = evidence.tuning()
    missed = replace(result, study=replace(result.study, target=evidence.ACCURACY))
    assert "does not meet the target (validation accuracy at least 0.97)" in words(tuning_text(missed))


def test_report_has_all_parts_and_what_is_next() -> None:
    text = words(report_text(evidence.report()))
    assert text.startswith("What is known about digits-mlp. - The measurement is stale")
    for part in (advice_text(evidence.advice()), throughput_text(evidence.throughput())):
        assert words(part) in text
    assert text.endswith("Next advisor dashboard")
    assert words(report_text(evidence.empty_report())).endswith("Next advisor measure")


def test_spending_names_every_limit() -> None:
    text = words(spending_text(evidence.spending()))
    assert "At most, at batch size 8, 16, 32 (the dearest ones" in text
    assert "98, of which 12 are recorded" in text
    assert "1,234,567" in text and "5.21 min" in text and "0.217 EUR" in text
    assert "Expected of the trainings to come, as the 12 recorded so far: trainings 20" in text
    assert "31.2 s" in text and "0.0217 EUR" in text
    unpriced = words(spending_text(replace(evidence.spending(), money=None)))
    assert "unknown without a price" in unpriced


def test_studies_show_names_whole_and_one_study_in_full() -> None:
    table = ALL_TEXTS["studies"]
    assert "digits-mlp/0123abcd/steps-to-target/b1024" in table
    assert "8dc5261aa7*" in table
    one = words(studies_text([replace(STUDY, note="It found 0.08.")]))
    assert "advisor tune --batch 64 --trials 20" in one
    assert "max_train_steps = 450" in one and "It found 0.08." in one
    assert "No study is recorded yet" in studies_text([])


def test_one_study_shows_what_was_not_committed() -> None:
    assert "Changes that were not committed: none." in studies_text([STUDY])
    assert "not committed: unknown" in studies_text([replace(STUDY, revision=None)])
    diff = "diff --git a/w.py b/w.py\n-rate = [0.1]  # " + "long " * 30 + "\n+rate = 0.2\n"
    shown = studies_text([replace(STUDY, uncommitted_diff=diff)])
    assert shown.endswith(f"Changes that were not committed:\n{diff}".replace(" \n", "\n"))


def test_a_long_command_is_not_broken() -> None:
    long = replace(STUDY, command="advisor tune " + "a/very/long/path/" * 10 + "w.py --batch 64")
    assert f"    {long.command}\n" in studies_text([long])
