"""What a user writes: a model family, its data, and the result that is wanted."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.errors import WorkloadError
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.search_space import SearchSpace
from advisor.records.target import Target


@dataclass(frozen=True)
class Workload:
    """A training problem.

    ``build_model`` takes a :class:`Hyperparameters` and returns an uncompiled Keras model. ``data`` takes
    nothing and returns ``{"train": …, "validation": …}`` and optionally ``"test"``; each is
    ``(x, y[, sample_weight])`` of arrays, an unbatched ``tf.data.Dataset`` of such elements, or a function
    of a ``tf.distribute.InputContext`` that returns one. ``loss`` and ``metrics`` are what ``compile``
    takes. ``optimizer`` is ``sgd``, ``nesterov``, ``adam``, ``nadam``, ``adamw``, or a function of the
    hyperparameters that returns a Keras optimizer. ``search_space`` names what ``build_model`` takes
    beyond the optimizer's own hyperparameters.
    """

    name: str
    build_model: Callable[[Hyperparameters], Any]
    data: Callable[[], Mapping[str, Any]]
    loss: Any = None
    metrics: Sequence[Any] = ()
    optimizer: str | Callable[[Hyperparameters], Any] = "adam"
    target: Target | None = None
    search_space: SearchSpace = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.+ -]*\w[\w.+ -]*", self.name):
            raise WorkloadError(
                f"A workload cannot be named {self.name!r}: its name is part of file names. Use letters, "
                "digits, spaces and any of . _ + -"
            )
