"""What every TrainingSession promises; a test class of each implementation inherits these."""

import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from advisor.errors import AdvisorError
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import StepPart
from advisor.workflows.ports import TrainingSession

OpenSession = Callable[[], TrainingSession]


@dataclass(frozen=True)
class SessionCase:
    """What the suite must know of the workload in a session.

    ``steps`` steps at ``batch_size`` with ``good`` lower the validation metric ``metric``; ``other`` values
    give another curve; ``diverging`` values make it non-finite, or larger than it began.
    """

    batch_size: int
    steps: int
    good: Mapping[str, HyperparameterValue]
    other: Mapping[str, HyperparameterValue]
    diverging: Mapping[str, HyperparameterValue]
    metric: str = "loss"
    splits: tuple[str, ...] = field(default=("train", "validation"))


class SessionContract:
    """Needs fixtures ``case``, ``session``, which all tests may share, and ``open_session``."""

    # What it is

    def test_it_says_what_it_trains(self, session: TrainingSession, case: SessionCase) -> None:
        description = session.describe()
        assert description.name
        assert set(case.splits) <= description.examples.keys()
        assert description.training_examples >= case.batch_size
        assert case.metric in description.metrics
        assert case.good.keys() <= {*description.optimizer_hyperparameters, *description.search_space}
        assert description.parameter_count > 0

    def test_it_says_what_it_reaches_untrained(self, session: TrainingSession) -> None:
        description = session.describe()
        assert tuple(description.initial_metrics) == description.metrics
        assert all(math.isfinite(value) for value in description.initial_metrics.values())

    def test_descriptions_are_the_same_every_time(
        self, session: TrainingSession, open_session: OpenSession
    ) -> None:
        other = open_session()
        assert other.describe() == session.describe() == session.describe()
        other.close()

    def test_answers_are_plain_data(self, session: TrainingSession, case: SessionCase) -> None:
        preparation = session.reset(case.batch_size, case.good, seed=0)
        for answer in (preparation, session.train(2), session.evaluate("validation"), session.describe()):
            assert pickle.loads(pickle.dumps(answer)) == answer
        values = session.evaluate("validation").metrics.values()
        assert all(type(value) is float for value in values)

    def test_memory_is_positive_or_unknown(self, session: TrainingSession) -> None:
        use = session.memory()
        assert all(size is None or size > 0 for size in (use.peak_bytes, use.limit_bytes, use.charged_bytes))

    # Parts of a step

    @pytest.mark.parametrize("part", StepPart)
    def test_parts_of_a_step_are_timed(
        self, part: StepPart, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        timing = session.train_part(part, 3)
        assert timing.steps == 3
        assert timing.seconds > 0
        assert timing.host_seconds >= 0

    def test_looking_at_a_step_changes_nothing_of_later_training(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        def curve() -> list[float]:
            session.reset(case.batch_size, case.good, seed=4)
            losses = [session.train(2).training_loss for _ in range(3)]
            return [*losses, _metric(session, case)]

        before = curve()
        for part in StepPart:
            session.train_part(part, 2)
        assert session.diagnose(0.0, 0).batch_size == case.batch_size
        assert curve() == before

    # Gradients

    def test_gradients_of_halves_and_of_the_whole_are_told_apart(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        """The whole is the mean of the halves: shorter than they are on average, by at most a half."""
        session.reset(case.batch_size + 1, case.good, seed=0)
        norms = session.gradient_norms(5)
        assert pickle.loads(pickle.dumps(norms)) == norms
        assert len(norms) == 5
        for one in norms:
            assert one.batch_size == case.batch_size
            halves = sum(one.halves) / 2
            assert 0 < halves < math.inf
            assert 0 <= one.whole <= halves * (1 + 1e-6)

    def test_looking_at_gradients_changes_nothing_of_the_training(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        def curve(batches: int) -> list[float]:
            session.reset(case.batch_size, case.good, seed=4)
            losses = []
            for steps in (2, 3, 4):
                losses += [session.train(steps).training_loss, _metric(session, case)]
                if batches:
                    assert session.gradient_norms(batches) == session.gradient_norms(batches)
                    losses.append(_metric(session, case))
                    assert losses[-1] == losses.pop(-2)
            return losses

        assert curve(3) == curve(0)

    def test_gradients_that_cannot_be_had_are_refused(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(1, case.good, seed=0)
        with pytest.raises(AdvisorError, match="1 example has no halves"):
            session.gradient_norms(2)
        session.reset(case.batch_size, case.good, seed=0)
        with pytest.raises(AdvisorError, match="0 batches"):
            session.gradient_norms(0)

    # Training

    def test_training_moves_the_metric(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        before = _metric(session, case)
        session.train(case.steps)
        assert _metric(session, case) < before

    def test_steps_are_counted(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        assert session.evaluate("validation").step == 0
        assert session.train(1).steps == 1
        assert session.train(6).steps == 6
        assert session.evaluate("validation").step == 7

    def test_a_block_says_how_long_it_took_and_its_loss(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        block = session.train(5)
        assert block.seconds > 0
        assert math.isfinite(block.training_loss)

    def test_how_steps_are_split_into_blocks_does_not_matter(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(case.batch_size, case.good, seed=1)
        session.train(12)
        at_once = _metric(session, case)
        session.reset(case.batch_size, case.good, seed=1)
        for steps in (1, 4, 7):
            session.train(steps)
        assert _metric(session, case) == pytest.approx(at_once, rel=1e-6)

    def test_a_diverging_training_shows(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        start = _metric(session, case)
        session.reset(case.batch_size, case.diverging, seed=0)
        loss = session.train(case.steps).training_loss
        assert not math.isfinite(loss) or loss > start

    # Starting again

    def test_the_same_seed_gives_the_same_curve(self, session: TrainingSession, case: SessionCase) -> None:
        first, second = (_curve(session, case, seed=3) for _ in range(2))
        assert first == second

    def test_another_session_gives_the_same_curve(
        self, session: TrainingSession, open_session: OpenSession, case: SessionCase
    ) -> None:
        other = open_session()
        assert _curve(other, case, seed=3) == _curve(session, case, seed=3)
        other.close()

    def test_another_seed_gives_another_curve(self, session: TrainingSession, case: SessionCase) -> None:
        assert _curve(session, case, seed=3) != _curve(session, case, seed=4)

    def test_other_hyperparameters_give_another_curve_and_leave_no_trace(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        before = _curve(session, case, seed=3)
        assert _curve(session, case, seed=3, hyperparameters=case.other) != before
        assert _curve(session, case, seed=3) == before

    def test_another_batch_size_leaves_no_trace(self, session: TrainingSession, case: SessionCase) -> None:
        before = _curve(session, case, seed=3)
        session.reset(case.batch_size + 1, case.good, seed=3)
        session.train(3)
        assert _curve(session, case, seed=3) == before

    def test_a_diverged_training_leaves_no_trace(self, session: TrainingSession, case: SessionCase) -> None:
        before = _curve(session, case, seed=3)
        session.reset(case.batch_size, case.diverging, seed=3)
        session.train(case.steps)
        assert _curve(session, case, seed=3) == before

    def test_hyperparameters_that_are_not_named_take_their_defaults(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        defaults = session.describe().optimizer_hyperparameters
        assert _curve(session, case, seed=3, hyperparameters={}) == _curve(
            session, case, seed=3, hyperparameters=defaults
        )

    def test_known_values_are_not_built_again(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        again = session.reset(case.batch_size, case.good, seed=1)
        assert (again.rebuilt, again.compile_s) == (False, 0.0)

    def test_the_largest_batch_size_is_the_training_split(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(session.describe().training_examples, case.good, seed=0)
        assert session.train(2).steps == 2

    # Evaluation

    def test_every_split_is_evaluated_whole(self, session: TrainingSession, case: SessionCase) -> None:
        description = session.describe()
        session.reset(case.batch_size, case.good, seed=0)
        for split in case.splits:
            evaluation = session.evaluate(split)
            assert (evaluation.split, evaluation.examples) == (split, description.examples[split])
            assert tuple(evaluation.metrics) == description.metrics
            assert evaluation.seconds > 0

    def test_evaluation_does_not_disturb_training(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=5)
        session.train(case.steps)
        alone = _metric(session, case)
        session.reset(case.batch_size, case.good, seed=5)
        for _ in range(case.steps):
            session.train(1)
            for split in case.splits:
                session.evaluate(split)
            session.describe()
        assert _metric(session, case) == pytest.approx(alone, rel=1e-6)

    def test_evaluating_twice_gives_the_same(self, session: TrainingSession, case: SessionCase) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        session.train(3)
        assert session.evaluate("validation").metrics == session.evaluate("validation").metrics

    # Keeping

    def test_a_restored_training_goes_on_as_if_never_stopped(
        self, session: TrainingSession, case: SessionCase, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "kept" / "checkpoint"
        session.reset(case.batch_size, case.good, seed=6)
        session.train(4)
        session.save(checkpoint)
        expected = [session.train(3).training_loss, _metric(session, case)]
        session.reset(case.batch_size, case.good, seed=7)
        session.train(2)
        session.restore(checkpoint)
        assert session.evaluate("validation").step == 4
        assert [session.train(3).training_loss, _metric(session, case)] == expected

    def test_a_checkpoint_is_replaced_whole(
        self, session: TrainingSession, case: SessionCase, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "checkpoint"
        session.reset(case.batch_size, case.good, seed=0)
        session.save(checkpoint)
        session.train(2)
        session.save(checkpoint)
        session.restore(checkpoint)
        assert session.evaluate("validation").step == 2
        assert list(tmp_path.iterdir()) == [checkpoint]

    def test_a_checkpoint_that_is_not_there_is_named(
        self, session: TrainingSession, case: SessionCase, tmp_path: Path
    ) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        with pytest.raises(AdvisorError, match="nowhere"):
            session.restore(tmp_path / "nowhere")

    # Faults in words

    @pytest.mark.parametrize("batch_size", [0, -1])
    def test_a_batch_size_that_is_not_positive_is_refused(
        self, session: TrainingSession, case: SessionCase, batch_size: int
    ) -> None:
        with pytest.raises(AdvisorError, match=str(batch_size)):
            session.reset(batch_size, case.good, seed=0)

    def test_a_batch_size_above_the_training_split_is_refused(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        examples = session.describe().training_examples
        with pytest.raises(AdvisorError, match=f"{examples + 1:,}.*{examples:,}"):
            session.reset(examples + 1, case.good, seed=0)

    def test_an_unknown_split_is_refused_and_the_known_are_named(
        self, session: TrainingSession, case: SessionCase
    ) -> None:
        session.reset(case.batch_size, case.good, seed=0)
        with pytest.raises(AdvisorError, match=r"'holdout'.*validation"):
            session.evaluate("holdout")

    def test_an_unknown_hyperparameter_is_refused(self, session: TrainingSession, case: SessionCase) -> None:
        with pytest.raises(AdvisorError, match="learning_rat'"):
            session.reset(case.batch_size, {"learning_rat": 0.1}, seed=0)

    def test_a_fault_leaves_the_session_usable(self, session: TrainingSession, case: SessionCase) -> None:
        with pytest.raises(AdvisorError):
            session.reset(0, case.good, seed=0)
        session.reset(case.batch_size, case.good, seed=0)
        assert session.train(1).steps == 1

    def test_training_needs_a_reset(self, open_session: OpenSession) -> None:
        fresh = open_session()
        with pytest.raises(AdvisorError, match="reset"):
            fresh.train(1)
        fresh.close()

    def test_closing_twice_is_allowed_and_nothing_else_afterwards(
        self, open_session: OpenSession, case: SessionCase
    ) -> None:
        fresh = open_session()
        fresh.close()
        fresh.close()
        with pytest.raises(AdvisorError, match=r"closed|ended"):
            fresh.reset(case.batch_size, case.good, seed=0)


def _metric(session: TrainingSession, case: SessionCase) -> float:
    return session.evaluate("validation").metrics[case.metric]


def _curve(
    session: TrainingSession,
    case: SessionCase,
    seed: int,
    hyperparameters: Mapping[str, HyperparameterValue] | None = None,
) -> list[float]:
    values = case.good if hyperparameters is None else hyperparameters
    session.reset(case.batch_size, values, seed)
    curve = [_metric(session, case)]
    for steps in (1, 2, case.steps):
        session.train(steps)
        curve.append(_metric(session, case))
    return curve
