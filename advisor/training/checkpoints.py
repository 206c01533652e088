"""One file that holds a training: its variables, its step, and what they belong to."""

import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import SessionError

Arrays = Mapping[str, np.ndarray[Any, Any]]


def write_checkpoint(path: Path, arrays: Arrays, **numbers: int) -> None:
    """Write ``arrays`` and ``numbers`` to ``path``, which is either the old file or the whole new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            contents: dict[str, Any] = {**arrays, **numbers}
            np.savez(file, **contents)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise SessionError(f"The checkpoint {path} cannot be written: {error.strerror or error}.") from error


def read_checkpoint(path: Path) -> Arrays:
    """Return what :func:`write_checkpoint` wrote to ``path``, in the same order."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        raise SessionError(f"The checkpoint {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SessionError(f"{path} is no checkpoint, or a damaged one: {error}.") from error
