"""From a reference to a workload: import the user's file or module, or unpickle what was sent."""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from advisor.errors import WorkloadError
from advisor.records.requests import WorkloadReference
from advisor.records.target import Target
from advisor.records.workload import Workload
from advisor.training.faults import blaming_the_workload

_DEFAULT_NAME = "workload"
_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w+))?")
_MODULE = re.compile(r"(?P<module>\w+(?:\.\w+)*):(?P<name>\w+)")


def load_workload(reference: WorkloadReference) -> Workload:
    """Return the workload that ``reference`` names, with the reference's own choices in place.

    Raises :class:`~advisor.errors.WorkloadError` where it cannot be found, imported or understood.
    """
    if reference.pickled is not None:
        workload = _unpickled(reference.pickled, reference.source)
    else:
        workload = _imported(reference.source)
    chosen = replace(
        workload,
        target=reference.target or workload.target,
        search_space={**workload.search_space, **reference.search_space},
    )
    _check_fields(chosen)
    return chosen


def _unpickled(pickled: bytes, source: str) -> Workload:
    with blaming_the_workload(f"unpacking the workload {source!r}"):
        found = cloudpickle.loads(pickled)
    return _checked(found, source)


def _imported(source: str) -> Workload:
    if match := _FILE.fullmatch(source):
        module = _import_file(match["path"])
    elif match := _MODULE.fullmatch(source):
        module = _import_module(match["module"])
    else:
        raise WorkloadError(
            f"{source!r} names no workload. Write file.py, file.py:name or package.module:name."
        )
    name = match["name"] or _DEFAULT_NAME
    if not hasattr(module, name):
        raise WorkloadError(f"{source} has no name {name!r}. {_alternatives(vars(module), match[1])}")
    return _checked(getattr(module, name), f"{name} in {source}")


def _import_file(source: str) -> ModuleType:
    """Import a file as a script would be: with its folder first on the path, once per process."""
    path = Path(source).expanduser().resolve()
    if not path.is_file():
        raise WorkloadError(
            f"There is no file {path}. Give the path of the Python file that has the workload."
        )
    _put_first_on_path(path.parent)
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    # A file may be called like a library that is already in use, which must not be replaced.
    name = path.stem if known is None else f"workload_file_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        with blaming_the_workload(f"importing {path.name}"):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str) -> ModuleType:
    _put_first_on_path(Path.cwd())
    try:
        with blaming_the_workload(f"importing {name}"):
            return import_module(name)
    except WorkloadError as error:
        missing = getattr(error.__cause__, "name", None)
        if isinstance(error.__cause__, ModuleNotFoundError) and f"{name}.".startswith(f"{missing}."):
            raise WorkloadError(
                f"There is no module {missing!r}, neither installed nor in {Path.cwd()}. "
                "Change to its folder, or give the path of the file."
            ) from error
        raise


def _put_first_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _alternatives(names: Mapping[str, Any], where: str) -> str:
    found = sorted(name for name, value in names.items() if isinstance(value, Workload))
    if not found:
        return f"It has no Workload object at all; write {_DEFAULT_NAME} = Workload(…) in it."
    return f"It has {', '.join(found)}; write {where}:{found[0]}."


def _checked(found: object, where: str) -> Workload:
    if isinstance(found, Workload):
        return found
    raise WorkloadError(
        f"{where} is of type {type(found).__name__}, not a Workload. Make it with advisor.Workload(…)."
    )


def _check_fields(workload: Workload) -> None:
    """Raise one error with every field that has a wrong type."""
    faults = [
        f"{field} must be {wanted}, got {type(getattr(workload, field)).__name__}"
        for field, right, wanted in (
            ("build_model", callable(workload.build_model), "a function of the hyperparameters"),
            ("data", callable(workload.data), "a function that returns the splits"),
            ("target", isinstance(workload.target, Target | None), "a Target"),
            ("metrics", not isinstance(workload.metrics, str), "a list"),
        )
        if not right
    ]
    if faults:
        raise WorkloadError(f"Workload {workload.name!r} cannot be used: {'; '.join(faults)}.")
