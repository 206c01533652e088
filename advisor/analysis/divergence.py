"""Batch sizes at which many trainings diverged, told in words."""

from collections.abc import Iterable, Iterator, Sequence

from advisor.analysis.quantities import number, percent
from advisor.records.trials import Trial, TrialState

MANY = 0.25
"""A larger share of trials that diverged means that the search space or the program is wrong."""
_ENDED = (TrialState.COMPLETE, TrialState.STOPPED, TrialState.INFEASIBLE)


def divergence_caveats(studies: Iterable[tuple[int, Sequence[Trial]]]) -> Iterator[str]:
    """Yield a sentence for each batch size at which more than a quarter of the trials diverged.

    It names the learning rate that parts those that diverged from the others, where there is one: every
    trial above diverged and none below did.
    """
    for batch_size, trials in sorted(studies, key=lambda study: study[0]):
        ended = [trial for trial in trials if trial.state in _ENDED]
        diverged = [trial for trial in ended if trial.state is TrialState.INFEASIBLE]
        if len(diverged) > MANY * len(ended):
            share = percent(len(diverged) / len(ended))
            yield (
                f"At batch size {batch_size:,} {len(diverged)} of {len(ended)} trainings ({share}) diverged"
                f"{_where(ended)}"
            )


def _where(ended: Sequence[Trial]) -> str:
    highest_stable = max(_rates(ended, diverged=False), default=0.0)
    lowest_diverged = min(_rates(ended, diverged=True), default=0.0)
    if lowest_diverged > highest_stable > 0:
        return (
            f", all from a learning rate of {number(lowest_diverged)} up and none up to "
            f"{number(highest_stable)}: stability bounds the learning rate there."
        )
    return ", not above one learning rate alone: look at the data, the loss and the other hyperparameters."


def _rates(trials: Sequence[Trial], diverged: bool) -> Iterator[float]:
    for trial in trials:
        rate = trial.plan.hyperparameters.get("learning_rate")
        if (trial.state is TrialState.INFEASIBLE) is diverged and isinstance(rate, int | float):
            yield float(rate)
