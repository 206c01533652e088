"""Optimizers whose hyperparameters are variables, so that new values need no new program."""

from collections.abc import Callable, Mapping, Set
from typing import Any, Protocol

import keras
import tensorflow as tf

from advisor.errors import WorkloadError
from advisor.records.hyperparameters import Hyperparameters
from advisor.records.search_space import HyperparameterValue
from advisor.training.faults import blaming_the_workload

Values = Mapping[str, HyperparameterValue]

_ADAM = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7, "weight_decay": 0.0}
DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "sgd": {"learning_rate": 1e-2, "momentum": 0.0, "weight_decay": 0.0},
    "nesterov": {"learning_rate": 1e-2, "momentum": 0.9, "weight_decay": 0.0},
    "adam": _ADAM,
    "nadam": _ADAM,
    "adamw": {**_ADAM, "weight_decay": 4e-3},
}
"""Hyperparameters of each optimizer, at the values that Keras gives them."""

CUSTOM = "custom"
_CUSTOM_DEFAULTS = {**_ADAM, "momentum": 0.9}
# An optimizer is built without what is switched off, so that it costs neither time nor memory.
_SWITCHES = ("momentum", "weight_decay")
_BELOW_ONE = ("momentum", "beta_1", "beta_2")


def defaults_of(optimizer: str | Callable[..., Any]) -> Mapping[str, float]:
    """Return what the hyperparameters of ``optimizer`` are where nobody says otherwise."""
    if callable(optimizer):
        return _CUSTOM_DEFAULTS
    if optimizer not in DEFAULTS:
        raise WorkloadError(
            f"There is no optimizer {optimizer!r}. Use {', '.join(DEFAULTS)}, or a function of the "
            "hyperparameters that returns a Keras optimizer."
        )
    return DEFAULTS[optimizer]


def check_values(values: Values, names: Mapping[str, float]) -> None:
    """Raise :class:`~advisor.errors.WorkloadError` where an optimizer's hyperparameter is out of range."""
    for name in names:
        value = values[name]
        highest = 1.0 if name in _BELOW_ONE else float("inf")
        if isinstance(value, bool | str) or not 0 <= value < highest:
            limits = "in [0, 1)" if name in _BELOW_ONE else "a finite number of at least 0"
            raise WorkloadError(f"{name} is {value!r}; it must be {limits}.")


class HeldOptimizer(Protocol):
    """A Keras optimizer, and how to give it other values without building it anew.

    ``configuration`` is what the user's function built it with, without a constant learning rate;
    ``names_read`` are the hyperparameters that were looked at for it.
    """

    optimizer: keras.optimizers.Optimizer
    configuration: Mapping[str, Any]

    @property
    def names_read(self) -> Set[str]:
        """Return names of hyperparameters."""

    def held(self) -> frozenset[str]:
        """Return the names of the hyperparameters that are held as values."""

    def fits(self, values: Values) -> bool:
        """Return whether :meth:`assign` can turn it into the optimizer for ``values``."""

    def assign(self, values: Values) -> None:
        """Take over ``values``."""


def make_optimizer(optimizer: str | Callable[..., Any], values: Values) -> HeldOptimizer:
    """Return the optimizer of a workload at ``values``, which hold every name of :func:`defaults_of`."""
    return CustomOptimizer(optimizer, values) if callable(optimizer) else NamedOptimizer(optimizer, values)


class NamedOptimizer:
    """One of :data:`DEFAULTS`, every hyperparameter a variable."""

    def __init__(self, name: str, values: Values) -> None:
        self._names = tuple(DEFAULTS[name])
        self.configuration: Mapping[str, Any] = {}
        self._switches = _switches(values)
        self.optimizer = _build(name, values)
        self._variables = {}
        for part in self._names:
            if part == "learning_rate" or not self._switches.get(part, True):
                continue
            variable = keras.Variable(float(values[part]), trainable=False, name=part)
            setattr(self.optimizer, part, variable)
            self._variables[part] = variable

    @property
    def names_read(self) -> Set[str]:
        """All of its own."""
        return self.held()

    def held(self) -> frozenset[str]:
        """Return all names."""
        return frozenset(self._names)

    def fits(self, values: Values) -> bool:
        """Return whether the same parts are switched on."""
        return _switches(values) == self._switches

    def assign(self, values: Values) -> None:
        """Write the variables."""
        self.optimizer.learning_rate = float(values["learning_rate"])
        for name, variable in self._variables.items():
            variable.assign(float(values[name]))


class CustomOptimizer:
    """What the user's function returns; only a constant learning rate can be changed in place."""

    def __init__(self, function: Callable[..., Any], values: Values) -> None:
        self._function, self._read = function, Hyperparameters(values)
        self.optimizer = _call(function, self._read)
        if self.optimizer.built:
            raise WorkloadError(
                "The optimizer function returned an optimizer that is already in use. Make a new one at each "
                "call."
            )
        configuration, self._learning_rate = _configuration(self.optimizer)
        self.configuration: Mapping[str, Any] = configuration

    @property
    def names_read(self) -> Set[str]:
        """What the function looked at."""
        return self._read.names_read

    def held(self) -> frozenset[str]:
        """Return the learning rate, if the function read it and a constant came of it."""
        constant = self._is_keras() and self._learning_rate is not None
        return frozenset({"learning_rate"} & self._read.names_read) if constant else frozenset()

    def fits(self, values: Values) -> bool:
        """Return whether the function would return the same but for a constant learning rate."""
        if self._reads_the_same(values):
            return True
        if not self._is_keras():
            return False
        other = _call(self._function, Hyperparameters(values))
        rest, learning_rate = _configuration(other)
        constant = (learning_rate is None) == (self._learning_rate is None)
        return type(other) is type(self.optimizer) and constant and rest == self.configuration

    def assign(self, values: Values) -> None:
        """Take over the constant learning rate that the function gives for ``values``."""
        if self._learning_rate is not None:
            _, learning_rate = _configuration(_call(self._function, Hyperparameters(values)))
            self.optimizer.learning_rate = learning_rate

    def _reads_the_same(self, values: Values) -> bool:
        return all(values[name] == self._read[name] for name in self._read.names_read)

    def _is_keras(self) -> bool:
        return type(self.optimizer).__module__.startswith("keras.")


class MomentumSGD(keras.optimizers.Optimizer):  # type: ignore[misc]
    """SGD with heavy-ball or Nesterov momentum, as in Sutskever et al. 2013, one kernel per weight.

    v ← momentum · v − learning_rate · g, then w ← w + v, or for Nesterov
    w ← w + momentum · v − learning_rate · g. ``momentum`` may be a variable, which Keras' own forbids.
    """

    def __init__(self, learning_rate: float, momentum: Any, nesterov: bool) -> None:
        super().__init__(learning_rate=learning_rate)
        self.momentum, self.nesterov = momentum, nesterov
        self._velocities: list[keras.Variable] = []

    def build(self, variables: list[keras.Variable]) -> None:
        """Create a velocity for each weight."""
        if not self.built:
            super().build(variables)
            self._velocities = self.add_optimizer_variables(variables, "velocity")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one weight, a ``tf.Variable``, and its velocity."""
        velocity = self._velocities[self._get_variable_index(variable)].value
        tf.raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=velocity.handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
            momentum=tf.cast(self.momentum, variable.dtype),
            use_nesterov=self.nesterov,
        )


def _switches(values: Values) -> dict[str, bool]:
    return {name: values[name] != 0 for name in _SWITCHES if name in values}


def _build(name: str, values: Values) -> keras.optimizers.Optimizer:
    learning_rate = float(values["learning_rate"])
    if name in ("sgd", "nesterov"):
        if values["momentum"] == 0:
            return keras.optimizers.SGD(learning_rate)
        return MomentumSGD(learning_rate, 0.0, nesterov=name == "nesterov")
    kinds = {"adam": keras.optimizers.Adam, "nadam": keras.optimizers.Nadam, "adamw": keras.optimizers.Adam}
    return kinds[name](learning_rate)


def _call(function: Callable[..., Any], hp: Hyperparameters) -> keras.optimizers.Optimizer:
    with blaming_the_workload("building the optimizer"):
        optimizer = function(hp)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise WorkloadError(
            f"The optimizer function returned {type(optimizer).__name__}; return a Keras optimizer."
        )
    return optimizer


def _configuration(optimizer: keras.optimizers.Optimizer) -> tuple[dict[str, Any], float | None]:
    """Return the configuration without name and constant learning rate, and that learning rate."""
    config = {**optimizer.get_config(), "name": None}
    constant = isinstance(config.get("learning_rate"), float | int)
    return config, float(config.pop("learning_rate")) if constant else None
