"""The entries of ``[search_space]``: what is searched where, and what keeps one value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from advisor.errors import WorkloadError
from advisor.records.search_space import (
    Categorical,
    Distribution,
    Float,
    HyperparameterValue,
    Int,
    Role,
    Scale,
)
from advisor.specs.sections import NUMBER, SCALAR, WHOLE_NUMBER, Kind, Section, one_of, shown

Number = TypeVar("Number", int, float)
Built = TypeVar("Built", Int, Float)

EXAMPLE = '{ role = "nuisance", low = 1e-3, high = 1.0, scale = "log" }'

# An entry has one of three forms, told apart by the first of these keys that it has.
_FORMS = {
    "value": ("role", "value"),
    "choices": ("role", "choices", "default"),
    "low": ("role", "low", "high", "scale", "type", "default"),
}
_KEYS = tuple(dict.fromkeys(key for keys in _FORMS.values() for key in keys))

_BATCH_SIZE_NAMES = {"batch", "batchsize", "globalbatchsize", "perdevicebatchsize"}
_BATCH_SIZE_REFUSED = (
    "batch size governs the speed of training and is never tuned for validation performance, since with "
    "everything else retuned each batch size reaches the same; name the sizes to compare in batch_sizes"
)


class _Type(StrEnum):
    FLOAT = "float"
    INT = "int"


@dataclass
class SearchChoices:
    """Every hyperparameter that a file names: its role, and its distribution or its one value."""

    search_space: dict[str, Distribution] = field(default_factory=dict)
    fixed: dict[str, HyperparameterValue] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)


def read_search_space(section: Section) -> SearchChoices:
    """Read the table ``[search_space]``; what is at fault is left out."""
    choices = SearchChoices()
    for name in section.values:
        if _means_batch_size(name):
            section.fault(name, _BATCH_SIZE_REFUSED)
        elif entry := section.table(name, _KEYS, EXAMPLE):
            _read_entry(name, entry, choices)
    return choices


def _read_entry(name: str, entry: Section, choices: SearchChoices) -> None:
    role = entry.get("role", one_of(Role))
    form = next((key for key in _FORMS if key in entry.values), "value" if role is Role.FIXED else "low")
    _check_form(entry, form, role)
    choices.roles[name] = role or (Role.FIXED if form == "value" else Role.NUISANCE)
    if form == "value":
        value = entry.require("value", SCALAR)
        if value is not None:
            choices.fixed[name] = value
        return
    distribution = _categorical(entry) if form == "choices" else _range(entry)
    if distribution is not None:
        choices.search_space[name] = distribution


def _check_form(entry: Section, form: str, role: Role | None) -> None:
    for key in entry.values:
        if key in _KEYS and key not in _FORMS[form]:
            entry.fault(key, f"does not go with {form}; beside that, valid are {', '.join(_FORMS[form])}")
    if form == "value" and role not in (Role.FIXED, None):
        entry.fault("role", f'got "{role}" for one value; valid is "fixed", or low and high, or choices')
    if form != "value" and role is Role.FIXED:
        entry.fault("role", 'got "fixed" for a range; valid is one value, as { role = "fixed", value = 0.9 }')


def _range(entry: Section) -> Distribution | None:
    if entry.get("type", one_of(_Type)) is _Type.INT:
        return _int(entry)
    if "type" not in entry.values and all(type(entry.values.get(key)) is int for key in ("low", "high")):
        entry.fault("type", 'low and high are whole numbers; say which is meant, "int" or "float"')
    return _float(entry)


def _int(entry: Section) -> Int | None:
    bounds, scale = _bounds(entry, WHOLE_NUMBER), entry.get("scale", one_of(Scale))
    if scale is Scale.LOG_ONE_MINUS:
        entry.fault("scale", f'"{scale}" is for real numbers below 1; whole numbers take "linear" or "log"')
    return bounds and _built(entry, lambda: Int(*bounds, log=scale is Scale.LOG))


def _float(entry: Section) -> Float | None:
    bounds, scale = _bounds(entry, NUMBER), entry.get("scale", one_of(Scale))
    logs = {"log": scale is Scale.LOG, "log_one_minus": scale is Scale.LOG_ONE_MINUS}
    return bounds and _built(entry, lambda: Float(*bounds, **logs))


def _bounds(entry: Section, kind: Kind[Number]) -> tuple[Number, Number, Number | None] | None:
    low, high, default = entry.require("low", kind), entry.require("high", kind), entry.get("default", kind)
    if low is None or high is None:
        return None
    if default is not None and not low <= default <= high:
        entry.fault("default", f"got {default:g}; valid is a value from low to high")
    return low, high, default


def _categorical(entry: Section) -> Categorical | None:
    choices = entry.get("choices", Kind("a list of different texts, numbers or booleans", _different_scalars))
    default = entry.get("default", SCALAR)
    if choices is None:
        return None
    if default is not None and default not in choices:
        entry.fault("default", f"got {shown(default)}; valid is one of {shown(choices)}")
    return Categorical(choices, default)


def _different_scalars(value: object) -> tuple[HyperparameterValue, ...] | None:
    if not isinstance(value, list) or not value:
        return None
    scalars: list[HyperparameterValue] = [scalar for scalar in map(SCALAR.read, value) if scalar is not None]
    return tuple(scalars) if len(set(scalars)) == len(value) else None


def _built(entry: Section, build: Callable[[], Built]) -> Built | None:
    """Return the distribution, or remember what it says against its bounds."""
    try:
        return build()
    except WorkloadError as error:
        entry.fault("", str(error))
        return None


def _means_batch_size(name: str) -> bool:
    return name.lower().replace("_", "").replace("-", "") in _BATCH_SIZE_NAMES
