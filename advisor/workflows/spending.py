"""What a search may use, told before it starts, and what it has used."""

from collections.abc import Iterable, Sequence

from advisor.analysis.cost import resource_cost
from advisor.analysis.quantities import duration, number
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.recommendation import Prices, SpendingPlan, Spent
from advisor.records.trials import Trial


def planned(
    batch_sizes: Sequence[int],
    trainings: int,
    max_examples: int,
    throughput: Throughput,
    prices: Prices,
    recorded: int,
) -> SpendingPlan:
    """Return the most that ``trainings`` at each of ``batch_sizes`` can use, all at their limit."""
    seconds = sum(trainings * trial_s(batch_size, max_examples, throughput) for batch_size in batch_sizes)
    once = Interval(1.0, 1.0, 1.0)
    cost = resource_cost(1, once, once.scaled(seconds), prices, throughput.configuration.devices, True)
    trials = trainings * len(batch_sizes)
    return SpendingPlan(
        batch_sizes=tuple(batch_sizes),
        trials=trials,
        examples=trials * max_examples,
        seconds=seconds,
        device_hours=cost.device_hours.estimate,
        money=cost.money.estimate if cost.money else None,
        currency=prices.currency,
        already_recorded_trials=recorded,
    )


def trial_s(batch_size: int, max_examples: int, throughput: Throughput) -> float:
    """Return the seconds that training on ``max_examples`` examples takes at a measured ``batch_size``."""
    time_s = throughput.time_per_step_s(batch_size)
    return time_s.estimate * max_examples / batch_size if time_s else 0.0


def spending_sentence(plan: SpendingPlan) -> str:
    """Say in words what a search may use."""
    money = f", {number(plan.money)} {plan.currency}" if plan.money is not None else ""
    recorded = (
        f" {plan.already_recorded_trials:,} trainings are recorded already."
        if plan.already_recorded_trials
        else ""
    )
    return (
        f"At most {plan.trials:,} trainings and {duration(plan.seconds)} of training "
        f"({number(plan.device_hours)} device-hours{money}); usually a small part of that, since a training "
        f"ends once it is slower than the best so far.{recorded}"
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
