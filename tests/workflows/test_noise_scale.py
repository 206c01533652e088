"""The hint of the noise scale: what it measures, what it warns of, and what it says where it cannot."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from advisor.analysis.quadratic import QuadraticModel, Trajectory
from advisor.errors import SessionError
from advisor.records.noise_scale import NoiseScale
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import GradientNorms
from advisor.training.quadratic_session import QuadraticSession, QuadraticSessions, QuadraticSettings
from advisor.workflows.noise_scale import batch_size_for_noise_scale, noise_scale_hint
from advisor.workflows.ports import SessionFactory, TrainingSession
from advisor.workflows.tools import SessionKeeper

SETTINGS = QuadraticSettings()


def measured(
    sessions: SessionFactory,
    batch_size: int,
    optimizer: str = "sgd",
    hyperparameters: Mapping[str, HyperparameterValue] | None = None,
    training_examples: int = 1_000_000,
) -> NoiseScale:
    with SessionKeeper(sessions) as keeper:
        described = keeper.session().describe()
        description = replace(described, optimizer=optimizer, examples={"train": training_examples})
        return noise_scale_hint(keeper, description, batch_size, hyperparameters or {}, seed=0)


@pytest.mark.parametrize(
    ("batch_size", "examples", "steps"), [(1_000, 150_000, 150), (1_000, 8_000, 100), (10, 80_000, 200)]
)
def test_the_hint_is_the_exact_noise_scale_after_one_pass(batch_size: int, examples: int, steps: int) -> None:
    model = QuadraticModel.power_law()
    trajectory = Trajectory(model, batch_size, SETTINGS.learning_rate)
    truth = model.gradient_noise / trajectory.squared_gradient_norm(steps)
    found = measured(QuadraticSessions(), batch_size, training_examples=examples)
    assert (found.batch_size, found.trained_steps) == (batch_size, steps)
    assert found.examples >= batch_size * steps
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx(truth)
    assert f"after {steps} steps at batch size {batch_size:,}" in found.sentence
    assert "hints at" in found.sentence


@pytest.mark.parametrize(
    ("optimizer", "adaptive", "warning"),
    [
        ("sgd", False, None),
        ("nesterov", False, None),
        ("adam", True, "SGD's: adam scales"),
        ("adamw", True, "SGD's: adamw scales"),
        ("custom", False, "SGD's, and need not hold for an optimizer of your own"),
    ],
)
def test_an_optimizer_other_than_sgd_is_warned_of(
    optimizer: str, adaptive: bool, warning: str | None
) -> None:
    found = measured(QuadraticSessions(), 1_000, optimizer)
    assert found.optimizer_is_adaptive is adaptive
    if warning is None:
        assert "formula" not in found.sentence
    else:
        assert warning in found.sentence


class OddSession(QuadraticSession):
    """Answers with norms that were set beforehand, or fails."""

    answer: Sequence[GradientNorms] | SessionError = ()

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        if isinstance(self.answer, SessionError):
            raise self.answer
        return self.answer


@dataclass
class OddSessions:
    answer: Sequence[GradientNorms] | SessionError
    opened: int = 0

    def open(self) -> TrainingSession:
        self.opened += 1
        session = OddSession(SETTINGS)
        session.answer = self.answer
        return session


def test_a_gradient_that_is_lost_in_noise_has_a_lower_end_alone() -> None:
    norms = [GradientNorms(64, whole, (1.0, 1.0)) for whole in (0.4, 0.6, 0.45, 0.55, 0.5)]
    found = measured(OddSessions(norms), 64)
    assert found.interval is not None
    assert math.isinf(found.interval.estimate) and math.isfinite(found.interval.low)
    assert "above" in found.sentence and "without an upper end" in found.sentence
    assert "inf" not in found.sentence.replace("information", "")


def test_a_session_that_fails_is_closed_and_told() -> None:
    sessions = OddSessions(SessionError("The gradient noise scale is not available here."))
    with SessionKeeper(sessions) as keeper:
        description = keeper.session().describe()
        found = noise_scale_hint(keeper, description, 64, {}, seed=0)
        keeper.session()
    assert sessions.opened == 2
    assert found.interval is None
    assert found.sentence.endswith("batch size 64. The gradient noise scale is not available here.")


def test_a_training_that_diverges_gives_no_number() -> None:
    diverging = {"learning_rate": 1e3}
    found = measured(QuadraticSessions(), 64, hyperparameters=diverging)
    assert found.interval is None
    assert found.sentence.endswith("The training diverged.")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_gives_no_number(bad: float) -> None:
    norms = [GradientNorms(64, 0.5, (1.0, 1.0)), GradientNorms(64, bad, (bad, 1.0))]
    found = measured(OddSessions(norms), 64)
    assert found.interval is None
    assert found.sentence.endswith("A gradient was not finite.")


@pytest.mark.parametrize(
    ("candidates", "training_examples", "expected"),
    [
        ((1,), 50_000, 1),
        ((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), 1_397, 16),  # a pass of 87 steps
        ((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), 1_000_000, 32),  # the middle
        ((1, 2, 4, 8), 12, 2),
    ],
)
def test_it_is_measured_at_a_batch_size_that_costs_little(
    candidates: Sequence[int], training_examples: int, expected: int
) -> None:
    assert batch_size_for_noise_scale(candidates, training_examples) == expected
