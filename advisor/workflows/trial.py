"""One trial: train from new weights, look at chosen steps, record every look."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from advisor.analysis.curves import diverged, never_finite
from advisor.errors import AdvisorError, SessionError
from advisor.records.session import BlockTiming
from advisor.records.trials import CurvePoint, Study, Trial, TrialPlan, TrialState
from advisor.workflows.ports import Store, TrainingSession
from advisor.workflows.tools import SessionKeeper

SECONDS_PER_CALL = 60.0
"""Longest training that one call to a session should take."""


@dataclass(frozen=True)
class Ending:
    """How a trial ends, and why in words."""

    state: TrialState
    reason: str


Watch = Callable[[Sequence[CurvePoint]], Ending | None]
"""Looks at a curve after each evaluation and may end the trial."""


@dataclass(frozen=True)
class TrialRunner:
    """Runs trials of one study in the kept session and records them in the store."""

    store: Store
    keeper: SessionKeeper
    study: Study

    def run(self, number: int | None, plan: TrialPlan, looks: Iterable[int], watch: Watch) -> Trial:
        """Train to each of the steps in ``looks`` and evaluate there, until ``watch`` ends the trial.

        ``number`` None takes the next free one. A session that fails costs this trial alone. An
        interruption is recorded, then raised again.
        """
        number = self.store.start_trial(self.study.name, number, plan)
        curve: list[CurvePoint] = []
        try:
            ending = self._follow(number, plan, looks, watch, curve)
        except SessionError as error:
            self.keeper.drop()
            ending = Ending(TrialState.FAILED, error.message)
        except AdvisorError as error:
            self.store.finish_trial(self.study.name, number, TrialState.FAILED, str(error))
            raise
        except BaseException:
            self.store.finish_trial(self.study.name, number, TrialState.INTERRUPTED, "interrupted")
            raise
        self.store.finish_trial(self.study.name, number, ending.state, ending.reason)
        return Trial(number, self.study.batch_size, plan, ending.state, ending.reason, tuple(curve))

    def _follow(
        self, number: int, plan: TrialPlan, looks: Iterable[int], watch: Watch, curve: list[CurvePoint]
    ) -> Ending:
        session = self.keeper.session()
        session.reset(self.study.batch_size, plan.hyperparameters, plan.seed)
        for step in looks:
            curve.append(_look(session, step, curve))
            self.store.record_point(self.study.name, number, curve[-1])
            if diverged(curve):
                return Ending(TrialState.INFEASIBLE, f"training diverged by step {step:,}")
            ending = watch(curve)
            if ending is not None:
                return _unless_lost(ending, curve)
        return _unless_lost(Ending(TrialState.COMPLETE, f"trained all {plan.max_steps:,} steps"), curve)


def _unless_lost(ending: Ending, curve: Sequence[CurvePoint]) -> Ending:
    lost = Ending(TrialState.INFEASIBLE, "training diverged: no evaluation had a finite loss")
    return lost if never_finite(curve) else ending


def _look(session: TrainingSession, step: int, curve: Sequence[CurvePoint]) -> CurvePoint:
    block = _train(session, step - (curve[-1].step if curve else 0), curve)
    evaluation = session.evaluate("validation")
    return CurvePoint(step, evaluation.metrics, block.training_loss, block.seconds, evaluation.seconds)


def _train(session: TrainingSession, steps: int, curve: Sequence[CurvePoint]) -> BlockTiming:
    """Take ``steps`` steps, in calls that stay short however long a step takes, so that a hang is seen."""
    blocks: list[BlockTiming] = []
    so_far_s = sum(point.train_s for point in curve)
    left, piece = steps, _steps_per_call(so_far_s, curve[-1].step) if curve else 1
    while left > 0:
        blocks.append(session.train(min(left, piece)))
        left -= blocks[-1].steps
        piece = min(10 * piece, _steps_per_call(blocks[-1].seconds, blocks[-1].steps))
    loss = sum(block.steps * block.training_loss for block in blocks) / steps
    return BlockTiming(steps, sum(block.seconds for block in blocks), loss)


def _steps_per_call(seconds: float, steps: int) -> int:
    return max(1, round(SECONDS_PER_CALL * steps / max(seconds, 1e-9)))
