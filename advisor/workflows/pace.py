"""The pace that a trial must keep up with, roughly, to be worth running on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.compass import progress
from advisor.analysis.dominance import LAG, LAG_ELSEWHERE, is_dominated, slowed
from advisor.records.search_space import HyperparameterValue
from advisor.records.target import Target
from advisor.records.trials import CurvePoint

Values = Mapping[str, HyperparameterValue]


@dataclass(frozen=True)
class Pace:
    """A curve that reached the target in ``steps`` steps.

    A learning rate below its ``rate`` (0: unknown) starts slower in proportion and may still overtake.
    """

    curve: Sequence[CurvePoint]
    steps: float
    lag: float = LAG
    rate: float = 0.0

    def elsewhere(self, batch_size: int, other: int) -> "Pace":
        """Return the pace to expect at batch size ``other`` where this was kept at ``batch_size``.

        A larger batch size needs no more steps, a smaller one no more examples (Shallue et al. 2019, arXiv
        1811.03600).
        """
        slower = max(1.0, batch_size / other)
        return Pace(slowed(self.curve, slower), self.steps * slower, LAG_ELSEWHERE)

    def leaves_behind(self, curve: Sequence[CurvePoint], values: Values, target: Target) -> bool:
        """Return whether a trial with hyperparameters ``values`` is so far behind that it may be stopped."""
        rate = progress(values, 1)
        lag = self.lag * max(1.0, self.rate / rate if rate > 0 else 1.0)
        return is_dominated(curve, self.curve, self.steps, target, lag)

    @property
    def steps_when_behind(self) -> float:
        """About the fewest steps to the target of a trial that was left behind."""
        return self.lag * self.steps
