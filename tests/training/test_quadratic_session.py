import math
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis.quadratic import QuadraticModel, Trajectory, best_learning_rate
from advisor.errors import SessionError, WorkloadError
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import Float
from advisor.records.target import Target
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings, open_session
from advisor.workflows.ports import TrainingSession
from tests.contracts.session import OpenSession, SessionCase, SessionContract

NOISY = QuadraticSessions(QuadraticSettings(log_noise=0.1))


class TestQuadraticSession(SessionContract):
    @pytest.fixture
    def case(self) -> SessionCase:
        return SessionCase(
            batch_size=32,
            steps=20,
            good={"learning_rate": 0.5},
            other={"learning_rate": 0.2, "momentum": 0.5},
            diverging={"learning_rate": 9.0},
        )

    @pytest.fixture
    def session(self) -> Iterator[TrainingSession]:
        session = NOISY.open()
        yield session
        session.close()

    @pytest.fixture
    def open_session(self) -> OpenSession:
        return NOISY.open


def exact() -> TrainingSession:
    return QuadraticSessions().open()


def steps_to_target(session: TrainingSession, batch_size: int, rate: float, seed: int) -> int:
    """Return the first step at which the session meets its target, looking at every step near it."""
    target = session.describe().target
    assert target is not None
    low, high = 0, 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        session.reset(batch_size, {"learning_rate": rate}, seed)
        session.train(middle)
        low, high = (low, middle) if target.reached(_loss(session)) else (middle, high)
    return high


def _loss(session: TrainingSession) -> float:
    return session.evaluate("validation").metrics["loss"]


@pytest.mark.parametrize(("rate", "momentum"), [(0.7, 0.0), (0.05, 0.9)])
def test_losses_are_those_of_the_expected_trajectory(rate: float, momentum: float) -> None:
    truth = Trajectory(QuadraticModel.power_law(), 64, rate, momentum)
    session = exact()
    session.reset(64, {"learning_rate": rate, "momentum": momentum}, seed=0)
    before = [truth.loss(step) for step in range(301)]
    for start, steps in ((0, 1), (1, 9), (10, 290)):
        block = session.train(steps)
        assert block.training_loss == pytest.approx(np.mean(before[start : start + steps]))
        assert _loss(session) == pytest.approx(before[start + steps], rel=1e-9)


def test_the_whole_search_has_an_exact_answer() -> None:
    rate, steps = best_learning_rate(QuadraticModel.power_law(), 128, target=0.1)
    assert steps_to_target(exact(), 128, rate, seed=3) == steps


def test_seeds_differ_by_the_stated_noise_and_independently_at_each_batch_size() -> None:
    session = NOISY.open()
    expected = np.log(Trajectory(QuadraticModel.power_law(), 64, 0.9).steps_to_target(0.1))
    logs = np.log([steps_to_target(session, 64, 0.9, seed) for seed in range(40)]) - expected
    assert abs(logs.mean()) < 0.04
    assert 0.08 < logs.std() < 0.12
    others = np.log([steps_to_target(session, 65, 0.9, seed) for seed in range(40)])
    assert abs(np.corrcoef(logs, others)[0, 1]) < 0.4


def test_a_noisy_curve_falls_as_steadily_as_an_exact_one() -> None:
    session = NOISY.open()
    session.reset(512, {"learning_rate": 0.9}, seed=1)
    losses = []
    for _ in range(200):
        session.train(1)
        losses.append(_loss(session))
    assert all(later < earlier for earlier, later in pairwise(losses))


def test_seconds_follow_the_stated_time_model() -> None:
    session = QuadraticSessions(QuadraticSettings(fixed_s=0.5, per_example_s=0.01)).open()
    session.reset(20, {}, seed=0)
    assert session.train(10).seconds == pytest.approx(10 * (0.5 + 0.01 * 20))


def test_divergence_ends_at_infinity_and_never_at_nan() -> None:
    session = exact()
    session.reset(8, {"learning_rate": 2.5, "momentum": 0.2}, seed=0)
    block = session.train(5_000)
    assert block.training_loss == math.inf
    assert _loss(session) == math.inf
    assert session.train(1).training_loss == math.inf


def test_a_reference_decides_target_search_space_and_fixed_values() -> None:
    space = {"learning_rate": Float(1e-3, 2.0, log=True)}
    target = Target("loss", at_most=0.01)
    reference = WorkloadReference("quadratic", target=target, search_space=space, fixed={"momentum": 0.9})
    session = open_session(reference)
    description = session.describe()
    assert description.target == target
    assert description.search_space == space
    assert description.optimizer_hyperparameters == {"learning_rate": 0.1}
    session.reset(8, {}, seed=0)
    session.train(50)
    assert _loss(session) == Trajectory(QuadraticModel.power_law(), 8, 0.1, 0.9).loss(50)
    assert open_session(WorkloadReference("quadratic")).describe().target == Target("loss", at_most=0.1)


def test_identity_changes_with_what_it_depends_on() -> None:
    def fingerprint(settings: QuadraticSettings):
        return QuadraticSessions(settings).open().describe().fingerprint

    usual = fingerprint(QuadraticSettings())
    slower, harder = (
        fingerprint(QuadraticSettings(fixed_s=0.1)),
        fingerprint(QuadraticSettings(target=Target("loss", at_most=0.01))),
    )
    assert (slower.training == usual.training, slower.timing == usual.timing) == (True, False)
    assert (harder.training == usual.training, harder.timing == usual.timing) == (False, True)


def test_a_target_on_another_metric_is_refused() -> None:
    session = open_session(WorkloadReference("quadratic", target=Target("accuracy", at_least=0.9)))
    with pytest.raises(WorkloadError, match=r"'accuracy'.*loss"):
        session.describe()


@pytest.mark.parametrize(
    "values", [{"learning_rate": 0.0}, {"learning_rate": math.nan}, {"momentum": 1.0}, {"momentum": "high"}]
)
def test_values_that_cannot_train_are_refused(values: dict[str, float | str]) -> None:
    with pytest.raises(WorkloadError, match="learning_rate"):
        exact().reset(8, values, seed=0)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    session = exact()
    session.reset(8, {"learning_rate": 0.1}, seed=0)
    session.save(tmp_path / "kept")
    session.reset(8, {"learning_rate": 0.2}, seed=0)
    with pytest.raises(SessionError, match=r"batch size 8, learning rate 0\.1"):
        session.restore(tmp_path / "kept")
    (tmp_path / "kept").write_text("not a checkpoint")
    with pytest.raises(SessionError, match="no checkpoint"):
        session.restore(tmp_path / "kept")


def test_no_tensorflow_is_imported() -> None:
    program = (
        "import sys, advisor.training.quadratic_session as room\n"
        "room.QuadraticSessions().open().describe()\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
