"""Measures which batch size to train with, and tunes the optimizer for it.

Names are resolved when they are first used, so that importing the package loads nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.records.hyperparameters import Hyperparameters
    from advisor.records.search_space import Categorical, Float, Int
    from advisor.records.target import Target
    from advisor.records.workload import Workload
    from advisor.wiring import compare_at, import_curve, measure, pilot, recommend, tune

_HOMES = {
    "Workload": "advisor.records.workload",
    "Target": "advisor.records.target",
    "Float": "advisor.records.search_space",
    "Int": "advisor.records.search_space",
    "Categorical": "advisor.records.search_space",
    "Hyperparameters": "advisor.records.hyperparameters",
    "compare_at": "advisor.wiring",
    "import_curve": "advisor.wiring",
    "measure": "advisor.wiring",
    "pilot": "advisor.wiring",
    "recommend": "advisor.wiring",
    "tune": "advisor.wiring",
}

__all__ = [
    "Categorical",
    "Float",
    "Hyperparameters",
    "Int",
    "Target",
    "Workload",
    "compare_at",
    "import_curve",
    "measure",
    "pilot",
    "recommend",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'advisor' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
