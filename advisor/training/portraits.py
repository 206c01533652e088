"""Portraits: plain data that differs where an object of the user's behaves differently."""

import hashlib
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from advisor.records.workload import Workload
from advisor.training.user_code import (
    contents,
    folder_of,
    functions_of,
    is_users,
    named_globals,
    package_of,
    source,
    texts,
    words,
)

_BLANK = re.compile(r"\{[^}]*\}|%\w")
_PLAIN = (str, int, float, bool, type(None))
_ARRAYS = (np.ndarray, np.generic, tf.Tensor, tf.Variable, keras.Variable)
_VALUES = (list, tuple, set, frozenset, Mapping, *_ARRAYS)
_OF_THE_FILE = ("module", "registered_name", "code")  # where a class or function stands, not what it does
# What these are is in their configuration; their attributes hold counted names and drawn seeds besides.
_TOLD_BY_CONFIGURATION = (
    keras.Layer,
    keras.Metric,
    keras.optimizers.Optimizer,
    keras.initializers.Initializer,
    keras.Variable,
)


class Portraits:
    """Makes portraits of the objects of one workload; a portrait never holds an address or a place.

    Code is followed to what it names: plain globals, and the functions and classes of the user's, each
    told once. So ``reached`` has all of these. With ``follows`` False, a portrait has only the code of
    what it shows, since globals may change once the code runs. ``own`` objects stand in packages that
    count as the user's even where they are installed.
    """

    def __init__(self, *own: Any, follows: bool = True) -> None:
        self._packages = {package_of(value) for value in own} - {"keras", "tensorflow", "builtins", ""}
        self._follows = follows
        self.reached: list[Any] = []
        self._told: dict[int, Any] = {}  # keeps what is told alive, so that no other object gets its id

    def of(self, value: Any) -> Any:
        """Return the portrait of ``value``."""
        if isinstance(value, _PLAIN):
            return value
        if id(value) in self._told:
            return getattr(value, "__qualname__", type(value).__qualname__)
        portray = next((how for kinds, how in _KINDS.items() if isinstance(value, kinds)), Portraits._object)
        self._told[id(value)] = value
        portrait = portray(self, value)
        if isinstance(value, _VALUES):  # Whether two equal ones are one object says nothing.
            del self._told[id(value)]
        return portrait

    def is_users(self, value: Any) -> bool:
        """Return whether a module, function or class is the user's."""
        return package_of(value) in self._packages or is_users(package_of(value))

    def _mapping(self, mapping: Mapping[Any, Any]) -> Any:
        left_out = _OF_THE_FILE if "class_name" in mapping else ()
        return {str(key): self.of(item) for key, item in mapping.items() if key not in left_out}

    def _sequence(self, values: Any) -> Any:
        return [self.of(value) for value in values]

    def _set(self, values: Any) -> Any:
        return sorted(str(self.of(value)) for value in values)

    def _partial(self, call: Any) -> Any:
        return [self.of(call.func), self.of(call.args), self.of(call.keywords)]

    def _method(self, method: Any) -> Any:
        return [self.of(method.__func__), self.of(method.__self__)]

    def _function(self, function: Any) -> Any:
        if self.is_users(function):
            return [function.__qualname__, self._code(function)]
        cells = [content for content in contents(function) if isinstance(content, (*_PLAIN, list, tuple))]
        return [function.__module__, function.__qualname__, self.of(cells)]

    def _class(self, kind: Any) -> Any:
        """Return the user's part of a class: its own code, and that of its bases."""
        own = [base for base in kind.__mro__ if self.is_users(base)]
        return [kind.__qualname__, *([self._code(base), self._attributes(base)] for base in own)]

    def _code(self, value: Any) -> Any:
        """Return the code of a function or class with what it holds and, where followed, what it names."""
        self.reached.append(value)
        held = [self.of(item) for item in contents(value) if self._follows or isinstance(item, _PLAIN)]
        if not self._follows:
            return [source(value), held]
        folder, found = folder_of(value), sorted(named_globals(value).items())
        return [source(value), held, {name: _elsewhere(self.of(item), folder) for name, item in found}]

    def _module(self, module: Any) -> Any:
        return None if self.is_users(module) else module.__name__.rpartition(".")[2]

    def _array(self, array: Any) -> Any:
        return digest_of(np.asarray(array))

    def _lambda(self, layer: Any) -> Any:
        """Leave out a Lambda layer's configuration: its code has line numbers and the name of the file."""
        return [self.of(layer.function), self.of(layer.arguments)]

    def _object(self, value: Any) -> Any:
        if hasattr(value, "__wrapped__"):  # as in a tf.function
            return self.of(value.__wrapped__)
        portrait = [self.of(type(value)), getattr(value, "__name__", None), self._configuration(value)]
        if not self.is_users(type(value)) or isinstance(value, _TOLD_BY_CONFIGURATION):
            return portrait
        return [*portrait, self._attributes(value)]

    def _configuration(self, value: Any) -> Any:
        """Return a Keras object's configuration, where it can tell one."""
        try:
            return self.of(_unnamed(value, value.get_config()))
        except Exception:
            return None

    def _attributes(self, value: Any) -> Any:
        """Return the attributes of an object or class that hold data."""
        held = {
            name: item
            for name, item in _unnamed(value, getattr(value, "__dict__", {})).items()
            if name[:1] != "_"
        }
        return {name: self.of(item) for name, item in sorted(held.items()) if self._is_data(item)}

    def _is_data(self, value: Any) -> bool:
        return isinstance(value, (*_PLAIN, *_VALUES)) or self.is_users(type(value))


_KINDS: Mapping[Any, Callable[[Portraits, Any], Any]] = {
    Mapping: Portraits._mapping,
    (list, tuple): Portraits._sequence,
    (set, frozenset): Portraits._set,
    partial: Portraits._partial,
    MethodType: Portraits._method,
    FunctionType: Portraits._function,
    type: Portraits._class,
    ModuleType: Portraits._module,
    (SimpleNamespace, Namespace): Portraits._attributes,
    tf.DType: lambda _, dtype: dtype.name,
    _ARRAYS: Portraits._array,
    keras.layers.Lambda: Portraits._lambda,
}


def words_of_workload(workload: Workload) -> set[str]:
    """Return every name and text in the user's code that can see hyperparameters, and in its modules."""
    own = (workload.build_model, workload.optimizer, workload.loss)
    portraits = Portraits(*own)
    portraits.of(own)
    scopes = {id(f.__globals__): f.__globals__ for value in portraits.reached for f in functions_of(value)}
    for scope in scopes.values():
        beside = [value for value in scope.values() if isinstance(value, FunctionType | type)]
        portraits.of([value for value in beside if portraits.is_users(value)])
    found: set[str] = set()
    for value in portraits.reached:
        found |= words(value).union(*map(texts, named_globals(value).values()))
    return found


def is_spoken_of(name: str, spoken: set[str]) -> bool:
    """Return whether ``name`` is among the words of some code, or can be put together from one.

    ``f"units_{layer}"`` is there as ``units_``, and ``"units{}".format(layer)`` as a whole.
    """
    parts = {part for word in spoken for part in _BLANK.split(word) if part}
    return name in spoken or any(
        (part.endswith("_") and name.startswith(part))
        or (part.startswith("_") and name.endswith(part))
        or (name.startswith(part) and name[len(part) :].isdecimal())
        for part in parts
    )


def digest_of(array: np.ndarray[Any, Any]) -> str:
    """Return a digest of all values of ``array``."""
    if array.dtype == object:
        return hashlib.sha256("\x1f".join(map(str, array.flat)).encode()).hexdigest()
    content: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.sha256(content).hexdigest()


def _unnamed(value: Any, parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out a loss's name, in which Keras may count the losses made so far."""
    if not isinstance(value, keras.losses.Loss):
        return parts
    return {name: part for name, part in parts.items() if name != "name"}


def _elsewhere(portrait: Any, folder: str) -> Any:
    """Return a text that names the user's folder as it would be in any other."""
    return portrait.replace(folder, ".") if isinstance(portrait, str) and len(folder) > 1 else portrait
