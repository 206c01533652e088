"""An estimate with its interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """``estimate`` between ``low`` and ``high`` at confidence ``level``; a bound may be infinite."""

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def scaled(self, factor: float) -> "Interval":
        """Return the interval of the quantity multiplied by a positive ``factor``."""
        return Interval(self.estimate * factor, self.low * factor, self.high * factor, self.level)

    def inverse(self, numerator: float = 1.0) -> "Interval":
        """Return the interval of ``numerator`` divided by the (positive) quantity."""
        return Interval(numerator / self.estimate, numerator / self.high, numerator / self.low, self.level)
