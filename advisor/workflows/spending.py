"""What a search may use, told before it starts, and what it has used."""

from collections.abc import Iterable, Sequence

from advisor.analysis.cost import resource_cost
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.recommendation import SpendingPlan, Spent
from advisor.records.requests import RecommendRequest
from advisor.records.trials import Trial


def planned(
    batch_sizes: Sequence[int],
    request: RecommendRequest,
    max_examples: int,
    throughput: Throughput,
    recorded: int,
) -> SpendingPlan:
    """Return the most that a search over ``batch_sizes`` can use: every trial at its limit of examples."""
    each = request.trials_per_batch_size + request.seeds
    trials = each * len(batch_sizes)
    seconds = sum(each * _trial_s(batch_size, max_examples, throughput) for batch_size in batch_sizes)
    once = Interval(1.0, 1.0, 1.0)
    cost = resource_cost(
        1, once, once.scaled(seconds), request.prices, throughput.configuration.devices, True
    )
    return SpendingPlan(
        batch_sizes=tuple(batch_sizes),
        trials=trials,
        examples=trials * max_examples,
        seconds=seconds,
        device_hours=cost.device_hours.estimate,
        money=cost.money.estimate if cost.money else None,
        already_recorded_trials=recorded,
    )


def spent(studies: Iterable[tuple[int, Sequence[Trial]]]) -> Spent:
    """Return what the trials of several studies used; each comes with its batch size."""
    rows = [(batch_size, trial) for batch_size, trials in studies for trial in trials]
    return Spent(
        examples=sum(batch_size * trial.steps for batch_size, trial in rows),
        steps=sum(trial.steps for _, trial in rows),
        trials=len(rows),
        wall_s=sum(trial.wall_s for _, trial in rows),
    )


def _trial_s(batch_size: int, max_examples: int, throughput: Throughput) -> float:
    time_s = throughput.time_per_step_s(batch_size)
    return time_s.estimate * max_examples / batch_size if time_s else 0.0
