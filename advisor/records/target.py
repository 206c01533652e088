"""The validation result that counts as having arrived."""

import math
from dataclasses import dataclass
from numbers import Real

from advisor.errors import WorkloadError


@dataclass(frozen=True)
class Target:
    """A bound on one metric of the validation split; its direction is explicit.

    ``metric`` is the name of a metric that the model reports, or ``"loss"`` (without penalties).
    Exactly one of ``at_least`` and ``at_most`` is given.
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise WorkloadError(
                f"Target({self.metric!r}) got at_least={self.at_least} and at_most={self.at_most}; "
                "give exactly one of them."
            )
        if type(self.metric) is not str:
            raise WorkloadError(f"Target got the metric {self.metric!r}; name it by a text such as 'loss'.")
        for bound in ("at_least", "at_most"):
            value = getattr(self, bound)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise WorkloadError(f"Target got {bound}={value!r}; it must be a finite number.")
            object.__setattr__(self, bound, float(value))

    @property
    def value(self) -> float:
        """The bound itself."""
        bound = self.at_least if self.at_most is None else self.at_most
        assert bound is not None
        return bound

    @property
    def maximize(self) -> bool:
        """Whether larger values of the metric are better."""
        return self.at_most is None

    def reached(self, value: float) -> bool:
        """Return whether ``value`` meets the bound; NaN never does."""
        return value >= self.value if self.maximize else value <= self.value

    def better(self, value: float, other: float) -> bool:
        """Return whether ``value`` is a better result than ``other``."""
        return value > other if self.maximize else value < other

    def __str__(self) -> str:
        return f"validation {self.metric} {'at least' if self.maximize else 'at most'} {self.value:g}"
