"""The user's own code: what it says, which globals it names, and which words are in it."""

import ast
import dis
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_FOLDERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_NEVER_USERS = frozenset({"advisor", "keras", "tensorflow", *sys.stdlib_module_names}) - {"__main__"}
# What is inside a class or static method, a property, a cached property and a tf.function.
_INNER = ("__func__", "fget", "func", "__wrapped__")
_WRAPPINGS = 9
_READ, _WRITTEN = ("LOAD_GLOBAL", "LOAD_NAME"), ("STORE_GLOBAL", "DELETE_GLOBAL")


def package_of(value: Any) -> str:
    """Return the top-level package that a module, function or class stands in, or ''."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(name or "").partition(".")[0]


@cache
def is_users(package: str) -> bool:
    """Return whether ``package`` is neither Python's own nor installed as a library."""
    if not package or package in _NEVER_USERS:
        return False
    module = sys.modules.get(package)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return not any(place and place.startswith(_FOLDERS) for place in places)


def functions_of(value: Any) -> Iterator[FunctionType]:
    """Yield a function, or those that a class defines itself, without what is wrapped around them."""
    members = vars(value).values() if isinstance(value, type) else (value,)
    yield from filter(None, map(_function_in, members))


def contents(value: Any) -> list[Any]:
    """Return what the functions of ``value`` close over, and the defaults of their parameters."""
    found: list[Any] = []
    for function in functions_of(value):
        found += [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                found.append(cell.cell_contents)
    return found


def source(value: Any) -> str:
    """Return the code of a function or class, independent of comments and layout."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(inspect.getsource(getattr(value, "__code__", value)))))
    except (OSError, TypeError, SyntaxError):
        return "".join(_bytecode(function.__code__) for function in functions_of(value))


def named_globals(value: Any) -> Mapping[str, Any]:
    """Return the globals that the code of a function or class reads, by name, and never writes.

    Of a user's module they are the attributes that the code names as well, as ``module.attribute``.
    """
    found: dict[str, Any] = {}
    for function in functions_of(value):
        codes = list(_codes(function.__code__))
        words = {name for code in codes for name in code.co_names}
        for name in _global_names(codes) & function.__globals__.keys():
            _add(found, name, function.__globals__[name], words)
    return found


def words(value: Any) -> set[str]:
    """Return every name and every text that stands in the code of a function or class."""
    codes = [code for function in functions_of(value) for code in _codes(function.__code__)]
    names = {name for code in codes for name in code.co_names}
    return names.union(*(texts(code.co_consts) for code in codes))


def texts(value: Any) -> set[str]:
    """Return the texts in ``value``, which may be a collection."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        return texts((*value.keys(), *value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return set[str]().union(*map(texts, value))
    return set()


def _function_in(value: Any) -> FunctionType | None:
    for _ in range(_WRAPPINGS):
        if isinstance(value, FunctionType):
            return value
        value = next((getattr(value, name) for name in _INNER if hasattr(value, name)), None)
    return None


def _add(found: dict[str, Any], name: str, value: Any, words: set[str]) -> None:
    if name in found or name.rpartition(".")[2].startswith("__"):
        return
    found[name] = value
    # A chain of modules can lead round in a circle, but not by ever more names.
    if isinstance(value, ModuleType) and is_users(package_of(value)) and name.count(".") < len(words):
        for attribute in words & vars(value).keys():
            _add(found, f"{name}.{attribute}", vars(value)[attribute], words - {attribute})


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global_names(codes: list[CodeType]) -> set[str]:
    """Return what is read; what is written as well is the state of a run."""
    instructions = [instruction for code in codes for instruction in dis.get_instructions(code)]
    read, written = (
        {one.argval for one in instructions if one.opname in names} for names in (_READ, _WRITTEN)
    )
    return read - written


def _bytecode(code: CodeType) -> str:
    constants = [
        _bytecode(item) if isinstance(item, CodeType) else _constant(item) for item in code.co_consts
    ]
    return f"{code.co_code.hex()}{constants}{code.co_names}"


def _constant(value: Any) -> str:
    """Return the text of a constant; the order of a set differs from process to process."""
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def folder_of(value: Any) -> str:
    """Return the folder of the file that a function or class was imported from, or ''."""
    file = next((function.__globals__.get("__file__") for function in functions_of(value)), None)
    return str(Path(file).parent) if file else ""
