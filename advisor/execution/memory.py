"""How much memory a session may take before the system would end it."""

from collections.abc import Iterator
from pathlib import Path

from advisor.analysis.quantities import memory
from advisor.errors import SessionError

LEAST_BYTES = 512 * 2**20
"""Below this a session cannot even describe the bundled digits, for which TensorFlow takes 450 MiB."""

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_MARGIN_SHARE = 0.1
_KIB = 1024


def default_memory_limit_bytes(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Return what is available now less a tenth, or None where the system does not say.

    Available is the least of what the machine has left and what each control group (version 1 or 2)
    above this process has left.
    """
    rooms = [*_machine_room(proc), *_group_rooms(proc, cgroups)]
    return int(max(0, min(rooms)) * (1 - _MARGIN_SHARE)) if rooms else None


def equal_share_bytes(sessions: int) -> int | None:
    """Return what each of so many ``sessions`` may take that are open at once, or None where unknown."""
    available = default_memory_limit_bytes()
    return None if available is None else available // sessions


def limit_within_available(asked: int | None, share: int | None = None) -> int | None:
    """Return the least of what was ``asked`` for, the ``share`` and :func:`default_memory_limit_bytes`.

    All in bytes; None where none is known. Raises :class:`~advisor.errors.SessionError` for less than
    ``LEAST_BYTES``.
    """
    if asked is not None and asked < LEAST_BYTES:
        raise SessionError(
            f"A memory limit of {_size(asked)} was asked for, in which TensorFlow cannot start. Ask for at "
            f"least {memory(LEAST_BYTES)}, and for more where the model or its data are large."
        )
    known = [limit for limit in (asked, share, default_memory_limit_bytes()) if limit is not None]
    limit = min(known, default=None)
    if limit is not None and limit < LEAST_BYTES:
        raise SessionError(
            f"A training session may take {_size(limit)} of the memory that is free now, and needs at least "
            f"{memory(LEAST_BYTES)}. End other programs, or compare fewer options at once."
        )
    return limit


def _size(size_bytes: int) -> str:
    if size_bytes >= _KIB**2:
        return memory(size_bytes)
    return "1 byte" if size_bytes == 1 else f"{size_bytes:,} bytes"


def _machine_room(proc: Path) -> Iterator[int]:
    available = _figures(proc / "meminfo").get("MemAvailable:")
    if available is not None:
        yield available * _KIB


def _group_rooms(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield what is left in each group; the kernel gives page cache back, so that counts as free."""
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            yield from _rooms(cgroups, name, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _rooms(cgroups / "memory", name, *files)


def _rooms(root: Path, name: str, limit_file: str, usage_file: str, cache_key: str) -> Iterator[int]:
    group = root / name.lstrip("/")
    for folder in (group, *group.parents):
        if folder.is_relative_to(root):
            limit, usage = _number(folder / limit_file), _number(folder / usage_file)
            if limit is not None and usage is not None:
                yield limit - usage + _figures(folder / "memory.stat").get(cache_key, 0)


def _number(path: Path) -> int | None:
    text = "".join(_lines(path))
    return int(text) if text.isdecimal() else None


def _figures(path: Path) -> dict[str, int]:
    words = (line.split() for line in _lines(path))
    return {word[0]: int(word[1]) for word in words if len(word) >= 2 and word[1].isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
