"""What a user writes: a model family, its data, and the result that is wanted."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.errors import WorkloadError
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.search_space import Distribution, SearchSpace
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
    beyond the optimizer's own hyperparameters. ``example_size`` takes the parts of an example and returns
    how large it is, where examples differ and their number of elements does not tell.
    """

    name: str
    build_model: Callable[[Hyperparameters], Any]
    data: Callable[[], Mapping[str, Any]]
    loss: Any = None
    metrics: Sequence[Any] = ()
    optimizer: str | Callable[[Hyperparameters], Any] = "adam"
    target: Target | None = None
    search_space: SearchSpace = field(default_factory=dict)
    example_size: Callable[..., float] | None = None

    def __post_init__(self) -> None:
        if (
            type(self.name) is not str
            or not re.fullmatch(r"[\w.+ -]*\w[\w.+ -]*", self.name)
            or len(self.name) > 80
        ):
            raise WorkloadError(
                f"A workload cannot be named {self.name!r}: its name is part of file names. Use up to 80 "
                "letters, digits, spaces and any of . _ + -"
            )
        if not isinstance(self.search_space, Mapping):
            raise WorkloadError(
                f"search_space of {self.name} is {self.search_space!r}; give a dictionary such as "
                '{"dropout": Float(0.0, 0.5)}.'
            )
        for name, distribution in self.search_space.items():
            if type(name) is not str or not isinstance(distribution, Distribution):
                raise WorkloadError(
                    f"search_space of {self.name} has {name!r}: {distribution!r}; give each hyperparameter, "
                    "named by a text, a Float, an Int or a Categorical."
                )
            if name in ("batch_size", "per_device_batch_size"):
                raise WorkloadError(
                    f"search_space of {self.name} has {name!r}. The batch size governs training speed and is "
                    "never tuned for validation performance; `advisor recommend` chooses it."
                )
