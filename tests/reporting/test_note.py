"""Notes for the dashboard say in markdown what a study found."""

from dataclasses import replace

from advisor.reporting.note import search_note, study_note
from tests.analysis.evidence import TARGET, result
from tests.reporting import evidence


def test_a_tuning_study() -> None:
    note = study_note(evidence.tuning())
    assert note.startswith("**The best of 20 trials at batch size 64 is trial 7")
    assert "- `learning_rate` = 0.0312" in note
    assert "- **diverged**: 3 of 20 trials diverged" in note
    assert "Next: `advisor report digits.py`" in note
    assert "\n\n\n" not in note


def test_a_tuning_study_without_a_result() -> None:
    assert study_note(evidence.tuning(best=False)).startswith("**No trial at batch size 64 gave a finite")
    assert "\n\n\n" not in study_note(evidence.tuning(best=False))


def test_a_search() -> None:
    note = search_note(result(64, 43.3, 0.1, at_edge=True), TARGET)
    assert "Batch size 64 reaches validation loss at most 0.15 in about 43 steps (39 to 48)" in note
    assert "2,770 examples" in note
    assert "`learning_rate` = 0.064" in note and "edge of the range" in note
    assert "8 trials in all, of which 1 diverged; 2 of them measured the steps with fresh seeds." in note


def test_a_search_that_did_not_reach_the_target() -> None:
    note = search_note(replace(result(64, None), best=None, infeasible=0), TARGET)
    assert "Batch size 64 did not reach validation loss at most 0.15." in note
    assert "8 trials in all." in note and "diverged" not in note
