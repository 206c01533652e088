"""One trial: train from new weights, look at chosen steps, record every look."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from advisor.analysis.curves import diverged
from advisor.errors import SessionError
from advisor.records.trials import CurvePoint, Study, Trial, TrialPlan, TrialState
from advisor.workflows.ports import Store, TrainingSession
from advisor.workflows.tools import SessionKeeper

FAILURES_IN_A_ROW = 2


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

    def run(self, number: int, plan: TrialPlan, looks: Iterable[int], watch: Watch) -> Trial:
        """Train to each of the steps in ``looks`` and evaluate there, until ``watch`` ends the trial.

        A session that fails costs this trial alone. An interruption is recorded, then raised again.
        """
        self.store.start_trial(self.study.name, number, plan)
        curve: list[CurvePoint] = []
        try:
            ending = self._follow(number, plan, looks, watch, curve)
        except SessionError as error:
            self.keeper.drop()
            ending = Ending(TrialState.FAILED, f"{error.message} {error.detail}".strip())
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
            curve.append(_look(session, step - (curve[-1].step if curve else 0), step))
            self.store.record_point(self.study.name, number, curve[-1])
            if diverged(curve):
                return Ending(TrialState.INFEASIBLE, f"training diverged by step {step:,}")
            ending = watch(curve)
            if ending is not None:
                return ending
        return Ending(TrialState.COMPLETE, f"trained all {plan.max_steps:,} steps")


def stop_if_broken(trials: Sequence[Trial]) -> None:
    """Raise :class:`~advisor.errors.SessionError` where the last trials all failed: more would fail too."""
    last = trials[-FAILURES_IN_A_ROW:]
    if len(last) == FAILURES_IN_A_ROW and all(trial.state is TrialState.FAILED for trial in last):
        raise SessionError(
            f"Training at batch size {last[-1].batch_size:,} failed {len(last)} times in a row. "
            f"{last[-1].reason}"
        )


def _look(session: TrainingSession, steps: int, step: int) -> CurvePoint:
    block = session.train(steps)
    evaluation = session.evaluate("validation")
    return CurvePoint(step, evaluation.metrics, block.training_loss, block.seconds, evaluation.seconds)
