"""The gradient noise scale of a short training, as a hint where a search of batch sizes may start."""

import math
from collections.abc import Mapping, Sequence

from advisor.analysis.noise_scale import noise_scale
from advisor.analysis.optimizers import PRIORS, prior
from advisor.errors import SessionError
from advisor.records.description import WorkloadDescription
from advisor.records.intervals import Interval
from advisor.records.noise_scale import NoiseScale
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import GradientNorms
from advisor.workflows.ports import TrainingSession
from advisor.workflows.tools import SessionKeeper

LEAST_BATCHES, MOST_BATCHES = 32, 256
"""The gradients of so many batches are looked at, in a pass over the training examples where the bounds allow
it: few examples of all that the search will take."""
STEPS_IN_A_PASS = 64
"""The batch size is one that makes a pass so many steps, unless that is larger than a middle one."""
LEAST_STEPS, MOST_STEPS = 100, 200
"""Some way into a training and not near its end: on the bundled digits, at batch size 128 and the usual
learning rate, the noise scale is 40 at the start, 70 after 20 steps, 260 after 100 and more after 200."""
_STEPS_PER_CALL = 10
_USE = "The noise scale hints at where larger batches stop paying in proportion, and grows during training."


def noise_scale_hint(
    keeper: SessionKeeper,
    description: WorkloadDescription,
    batch_size: int,
    hyperparameters: Mapping[str, HyperparameterValue],
    seed: int,
) -> NoiseScale:
    """Train for a pass over the training examples, but 100 to 200 steps, and measure the noise scale there.

    A training that fails or diverges, and a model whose gradients cannot be had, give a hint without an
    interval that says so; a session that failed is closed. :func:`batch_size_for_noise_scale`
    chooses ``batch_size``.
    """
    steps = min(max(description.training_examples // batch_size, LEAST_STEPS), MOST_STEPS)
    norms: Sequence[GradientNorms] = ()
    try:
        session = keeper.session()
        session.reset(batch_size, hyperparameters, seed)
        if _train(session, steps):
            norms = session.gradient_norms(_batches(description.training_examples, batch_size))
        interval, why = _interval(norms, seed)
    except SessionError as error:
        keeper.drop()
        interval, why = None, error.message
    return NoiseScale(
        batch_size=batch_size,
        trained_steps=steps,
        examples=batch_size * (steps + len(norms)),
        interval=interval,
        optimizer_is_adaptive=_is_adaptive(description.optimizer),
        sentence=_sentence(interval, why, f"after {steps:,} steps at batch size {batch_size:,}", description),
    )


def batch_size_for_noise_scale(candidates: Sequence[int], training_examples: int) -> int:
    """Return where the noise scale is measured, one of ``candidates`` (ascending)."""
    middle, wanted = candidates[len(candidates) // 2], training_examples / STEPS_IN_A_PASS
    return min(candidates, key=lambda one: abs(math.log(one / min(middle, max(wanted, 2.0)))))


def _batches(training_examples: int, batch_size: int) -> int:
    return min(max(training_examples // batch_size, LEAST_BATCHES), MOST_BATCHES)


def _train(session: TrainingSession, steps: int) -> bool:
    """Take ``steps`` steps in short calls, so that a hang is seen; return whether the loss stayed finite."""
    done = 0
    while done < steps:
        block = session.train(min(_STEPS_PER_CALL, steps - done) if done else 1)
        done += block.steps
        if not math.isfinite(block.training_loss):
            return False
    return True


def _interval(norms: Sequence[GradientNorms], seed: int) -> tuple[Interval | None, str]:
    """Return the interval, or why there is none."""
    if not norms:
        return None, "The training diverged."
    whole, half = [one.whole for one in norms], [sum(one.halves) / 2 for one in norms]
    if not all(map(math.isfinite, (*whole, *half))):
        return None, "A gradient was not finite."
    return noise_scale(half, whole, norms[0].batch_size, seed), ""


def _sentence(interval: Interval | None, why: str, where: str, description: WorkloadDescription) -> str:
    if interval is None:
        return f"The gradient noise scale could not be measured {where}. {why}"
    return " ".join([_found(interval, where), _USE, *_warning(description.optimizer)])


def _found(interval: Interval, where: str) -> str:
    level = f"{interval.level:.0%}".replace("%", " %")
    if math.isinf(interval.estimate):
        return (
            f"The gradient noise scale, {where}, is above {_number(interval.low)} ({level} interval without "
            "an upper end): the mean gradient could not be told from its noise."
        )
    bounds = f"{_number(interval.low)} to {_number(interval.high)}"
    return f"The gradient noise scale, {where}, is {_number(interval.estimate)} ({level} interval {bounds})."


def _warning(optimizer: str) -> Sequence[str]:
    """Return what an optimizer other than SGD calls for."""
    if optimizer not in PRIORS:
        return ["Its formula is SGD's, and need not hold for an optimizer of your own."]
    if _is_adaptive(optimizer):
        return [
            f"Its formula is SGD's: {optimizer} scales each gradient itself, so that it may mislead here."
        ]
    return []


def _is_adaptive(optimizer: str) -> bool:
    return prior(optimizer).learning_rate_exponent < 1


def _number(examples: float) -> str:
    """Return a number of examples to about three digits."""
    return f"{examples:,.0f}" if examples >= 100 else f"{examples:.3g}"
