"""What a search may use, told before it starts, and what it has used."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.analysis.cost import resource_cost
from advisor.analysis.quantities import duration, number
from advisor.records.intervals import Interval
from advisor.records.measurement import Throughput
from advisor.records.noise_scale import NoiseScale
from advisor.records.recommendation import ExpectedSpending, Prices, SpendingPlan, Spent
from advisor.records.trials import CurvePoint, Trial

EXPECTED_TRIALS = 5
"""Trials that select at a batch size, as expected beforehand: a directed search needs 3 to 8."""
EXPECTED_SHARE = 0.1
"""Length of a training as a share of its limit, as expected beforehand: targets are chosen to be reached."""


def planned(
    batch_sizes: Sequence[int],
    trainings: int,
    max_examples: int | Mapping[int, int],
    throughput: Throughput,
    prices: Prices,
    recorded: int,
    expected: ExpectedSpending | None = None,
) -> SpendingPlan:
    """Return the most that ``trainings`` at each of ``batch_sizes`` can use, all at their limit.

    The limit of one training is ``max_examples``, or what that says for each batch size.
    """
    limits = max_examples if isinstance(max_examples, Mapping) else dict.fromkeys(batch_sizes, max_examples)
    examples = {batch_size: trainings * limits[batch_size] for batch_size in batch_sizes}
    seconds, device_hours, money = _cost(examples, throughput, prices)
    return SpendingPlan(
        batch_sizes=tuple(batch_sizes),
        trials=trainings * len(batch_sizes),
        examples=sum(examples.values()),
        seconds=seconds,
        device_hours=device_hours,
        money=money,
        currency=prices.currency,
        already_recorded_trials=recorded,
        expected=expected,
    )


def expected_spending(
    batch_sizes: Sequence[int],
    most_trials: int,
    seeds: int,
    max_examples: int,
    throughput: Throughput,
    prices: Prices,
    recorded: Iterable[tuple[int, Sequence[Trial]]],
) -> ExpectedSpending:
    """Return what a search at ``batch_sizes`` will use as far as can be told beforehand.

    ``recorded`` are studies of the same workload, each with its batch size: those batch sizes are done, and
    the others are taken to need as many trainings, and as long ones, as they did on average. Where nothing is
    recorded, :data:`EXPECTED_TRIALS` trials (at most ``most_trials``) and ``seeds`` fresh seeds of
    :data:`EXPECTED_SHARE` of their limit stand in, which is said.
    """
    known = {batch_size: trials for batch_size, trials in recorded if trials}
    left = [batch_size for batch_size in batch_sizes if batch_size not in known]
    if not known:
        trials = min(EXPECTED_TRIALS, most_trials)
        basis = (
            f"assuming {_counted(trials, 'trial')} and {_counted(seeds, 'fresh seed')} at each batch size, "
            f"each of them {EXPECTED_SHARE:.0%} as long as the limit"
        )
        trainings: float = trials + seeds
        return expected_trainings(left, trainings, EXPECTED_SHARE * max_examples, throughput, prices, basis)
    used = spent(known.items())
    basis = (
        f"as long and as many at each batch size as the {_counted(used.trials, 'training')} recorded so far"
    )
    trainings = used.trials / len(known)
    return expected_trainings(left, trainings, used.examples / used.trials, throughput, prices, basis)


def spread_evenly(batch_sizes: Sequence[int], most: int) -> Sequence[int]:
    """Return at most ``most`` of ``batch_sizes``, both ends and what lies evenly between them."""
    if len(batch_sizes) <= most:
        return batch_sizes
    last = len(batch_sizes) - 1
    return [batch_sizes[round(place * last / (most - 1))] for place in range(most)]


def expected_trainings(
    batch_sizes: Sequence[int],
    trainings: float,
    examples: float | Mapping[int, int],
    throughput: Throughput,
    prices: Prices,
    basis: str,
) -> ExpectedSpending:
    """Return what ``trainings`` at each of ``batch_sizes`` use, of ``examples`` each (by batch size)."""
    lengths = examples if isinstance(examples, Mapping) else dict.fromkeys(batch_sizes, examples)
    used = {batch_size: trainings * lengths[batch_size] for batch_size in batch_sizes}
    seconds, device_hours, money = _cost(used, throughput, prices)
    return ExpectedSpending(
        trials=round(trainings * len(batch_sizes)),
        examples=round(sum(used.values())),
        seconds=seconds,
        device_hours=device_hours,
        money=money,
        basis=basis,
    )


def _cost(
    examples: Mapping[int, float], throughput: Throughput, prices: Prices
) -> tuple[float, float, float | None]:
    """Return seconds, device-hours and money of training on so many examples at each batch size."""
    seconds = sum(trial_s(batch_size, number_, throughput) for batch_size, number_ in examples.items())
    once = Interval(1.0, 1.0, 1.0)
    cost = resource_cost(1, once, once.scaled(seconds), prices, throughput.configuration.devices, True)
    return seconds, cost.device_hours.estimate, cost.money.estimate if cost.money else None


def trial_s(batch_size: int, examples: float, throughput: Throughput) -> float:
    """Return the seconds that training on ``examples`` examples takes at a measured ``batch_size``."""
    time_s = throughput.time_per_step_s(batch_size)
    return time_s.estimate * examples / batch_size if time_s else 0.0


def spending_sentence(plan: SpendingPlan) -> str:
    """Say in words what a search may use, and what is expected."""
    recorded = (
        f" Recorded already: {_counted(plan.already_recorded_trials, 'training')}."
        if plan.already_recorded_trials
        else ""
    )
    most = _in_words(plan.trials, plan.seconds, plan.device_hours, plan.money, plan.currency)
    return f"At most {most}.{_expected_sentence(plan)}{recorded}"


def _expected_sentence(plan: SpendingPlan) -> str:
    expected = plan.expected
    if expected is None:
        return ""
    likely = _in_words(
        expected.trials, expected.seconds, expected.device_hours, expected.money, plan.currency
    )
    return f" Expected: {likely}, {expected.basis}."


def _in_words(trials: int, seconds: float, device_hours: float, money: float | None, currency: str) -> str:
    price = f", {number(money)} {currency}" if money is not None else ""
    resources = f"{number(device_hours)} device-hours{price}"
    return f"{_counted(trials, 'training')} and {duration(seconds)} of training ({resources})"


def _counted(number_: int, what: str) -> str:
    return f"{number_:,} {what}{'' if number_ == 1 else 's'}"


def spent(studies: Iterable[tuple[int, Sequence[Trial]]]) -> Spent:
    """Return what the trials of several studies used; each comes with its batch size."""
    rows = [(batch_size, trial) for batch_size, trials in studies for trial in trials]
    return Spent(
        examples=sum(batch_size * trial.steps for batch_size, trial in rows),
        steps=sum(trial.steps for _, trial in rows),
        trials=len(rows),
        wall_s=sum(trial.wall_s for _, trial in rows),
        evaluations=sum(len(trial.curve) for _, trial in rows),
    )


def with_examples(used: Spent, noise_scale: NoiseScale | None) -> Spent:
    """Return ``used`` with the examples that measuring the noise scale took."""
    return replace(used, examples=used.examples + noise_scale.examples) if noise_scale else used


class AllowanceUsedUpError(Exception):
    """The trainings of a search have used what they may; the message says so to the user."""


@dataclass
class Allowance:
    """What the trainings of a search may use in all (None: no limit), and what they have used."""

    examples: int | None
    seconds: float | None
    used: Spent

    def add(self, batch_size: int, trial: Trial) -> None:
        """Count what ``trial`` used."""
        self.used = _sum(self.used, batch_size, trial.curve)

    def covers(self, batch_size: int, curve: Sequence[CurvePoint]) -> bool:
        """Return whether a training that came as far as ``curve`` may go on."""
        if self.examples is None and self.seconds is None:
            return True
        after = _sum(self.used, batch_size, curve)
        within = self.examples is None or after.examples < self.examples
        return within and (self.seconds is None or after.wall_s < self.seconds)

    def check(self) -> None:
        """Raise AllowanceUsedUpError where nothing is left."""
        if not self.covers(0, ()):
            raise AllowanceUsedUpError(
                f"The allowance is used up: {self.used.examples:,} examples and {duration(self.used.wall_s)} "
                "of training and evaluation. Allow more with --spend-examples or --spend-time to go on."
            )


def _sum(before: Spent, batch_size: int, curve: Sequence[CurvePoint]) -> Spent:
    steps = curve[-1].step if curve else 0
    wall_s = sum(point.train_s + point.evaluate_s for point in curve)
    return Spent(
        before.examples + batch_size * steps,
        before.steps + steps,
        before.trials + 1,
        before.wall_s + wall_s,
        before.evaluations + len(curve),
    )
