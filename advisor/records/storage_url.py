"""Where results are kept: the URL of the one database that holds every table."""

import re
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import StorageError

POSTGRES_DRIVER_MISSING = (
    "A PostgreSQL database needs the driver psycopg, which is not installed. "
    "Install the postgres extra (pip install '.[postgres]' in the advisor's folder)."
)
BUSY_TIMEOUT_S = 60
"""How long a writer waits for another."""
CONNECT_TIMEOUT_S = 10
"""How long a server may take to answer."""

_ANOTHER = "or name another with --storage."
_UNREACHED = "Start its server, or correct the host and the port in the URL."
_LACKING = f"lacks a table or a column that is needed. Restore it from a copy, {_ANOTHER}"
# What a driver says, as a pattern, and what that means.
_MEANINGS = {
    "unable to open database file": f"cannot be opened. Create its directory or make it writable, {_ANOTHER}",
    "readonly database": f"cannot be written. Make the file and its directory writable, {_ANOTHER}",
    "file is not a database": "is another kind of file, not a SQLite database. Name another with --storage.",
    "database disk image is malformed": f"is damaged. Restore it from a copy, {_ANOTHER}",
    "database is locked": f"was held by another program for {BUSY_TIMEOUT_S} s. End that and run this again.",
    "disk is full": "cannot grow, as its disk is full. Free some space and run this again.",
    "Could not decode to UTF-8": f"holds text that is damaged. Restore it from a copy, {_ANOTHER}",
    "no such (table|column)|has no column named": _LACKING,
    "(relation|column) .* does not exist": _LACKING,
    "Connection refused": f"refused the connection. {_UNREACHED}",
    "resolve host|translate host name": "has an unknown host. Correct it in the URL.",
    "timeout expired": f"did not answer. {_UNREACHED}",
}
_VALID = "Valid are sqlite:///FILE and postgresql://USER:PASSWORD@HOST/DATABASE."


@dataclass(frozen=True)
class StorageURL:
    """A database that is told apart: ``url`` opens it, ``str()`` shows it without its password.

    ``sqlite_path`` is absolute, and None for PostgreSQL.
    """

    url: str
    shown: str
    sqlite_path: Path | None = None

    def __str__(self) -> str:
        return self.shown

    def explained(self, said: str) -> str:
        """Return the sentence for what a database driver said."""
        if self.sqlite_path and self.sqlite_path.is_dir():
            return f"The database {self} is a folder. Name a file, as in sqlite:///FOLDER/advisor.db."
        for pattern, meaning in _MEANINGS.items():
            if re.search(pattern, said):
                return f"The database {self} {meaning}"
        return f"The database {self} cannot be used: {' '.join(said.split())[:300]}"


def parse_storage_url(text: str) -> StorageURL:
    """Return the database that ``text`` names; raise StorageError where it is neither kind that is known."""
    dialect, separator, rest = text.partition("://")
    if dialect in ("sqlite", "sqlite+pysqlite") and separator:
        return _sqlite(text, rest)
    if dialect in ("postgresql", "postgresql+psycopg") and separator:
        return StorageURL(f"postgresql+psycopg://{rest}", _without_password(text))
    raise StorageError(f"{_without_password(text)!r} is not the URL of a database that can be used. {_VALID}")


def _sqlite(text: str, rest: str) -> StorageURL:
    name = rest.removeprefix("/")
    if name in ("", ":memory:"):
        raise StorageError(
            f"{text!r} names a database in memory, which Optuna cannot share and which is lost at the end. "
            "Name a file, as in sqlite:///advisor.db."
        )
    if not rest.startswith("/") or "?" in name:
        raise StorageError(
            f"{text!r} does not name one SQLite file: write sqlite:///FILE, with three slashes (four before "
            "an absolute path) and without options."
        )
    path = Path(name).absolute()
    return StorageURL(f"sqlite:///{path}", f"sqlite:///{name}", path)


def _without_password(text: str) -> str:
    """Return ``text`` without what follows a user's name, and without options: either may be a secret."""
    masked = re.sub(r"://([^:/@]*):.*@", r"://\1:***@", text, flags=re.DOTALL)
    return masked.partition("?")[0]
