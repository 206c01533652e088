"""Many diverged trainings are told with the learning rate from which they diverge."""

import pytest

from advisor.analysis.divergence import divergence_caveats
from advisor.records.trials import Trial, TrialPlan, TrialPurpose, TrialState


def trials(*rates: tuple[float, TrialState]) -> list[Trial]:
    return [
        Trial(number, 8, TrialPlan({"learning_rate": rate}, 0, TrialPurpose.SELECT, 9), state, "", ())
        for number, (rate, state) in enumerate(rates)
    ]


DONE, STOPPED, BAD, LOST = (
    TrialState.COMPLETE,
    TrialState.STOPPED,
    TrialState.INFEASIBLE,
    TrialState.INTERRUPTED,
)


def test_the_threshold_is_named_where_there_is_one() -> None:
    found = trials((0.01, DONE), (0.1, STOPPED), (0.5, BAD), (2.0, BAD), (9.0, LOST))
    assert list(divergence_caveats([(1024, found)])) == [
        "At batch size 1,024 2 of 4 trainings (50 %) diverged, all from a learning rate of 0.500 up and none "
        "up to 0.100: stability bounds the learning rate there."
    ]


@pytest.mark.parametrize(
    "found",
    [
        trials((0.5, DONE), (0.1, BAD)),
        trials((0.1, BAD), (0.2, BAD)),
        [Trial(0, 8, TrialPlan({}, 0, TrialPurpose.SELECT, 9), BAD, "", ())],
    ],
)
def test_without_a_threshold_the_fault_is_sought_elsewhere(found: list[Trial]) -> None:
    (said,) = divergence_caveats([(8, found)])
    assert "not above one learning rate alone" in said


def test_a_quarter_and_less_is_usual() -> None:
    few = trials((0.01, DONE), (0.1, DONE), (0.2, DONE), (0.5, BAD))
    assert list(divergence_caveats([(8, few), (16, []), (32, trials((1.0, LOST)))])) == []
