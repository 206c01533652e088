"""Databases for every room's tests: a SQLite file, and a private PostgreSQL that lives for the session."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.register_assert_rewrite("tests.contracts.store", "tests.contracts.board")

# A background job of a shell ignores Ctrl-C, and so would every command that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

PASSWORD = "open-sesame"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the URL of a server, without a database's name."""
    binaries = _postgres_binaries()
    if binaries is None and os.environ.get("ADVISOR_REQUIRE_POSTGRES") == "1":
        pytest.fail("ADVISOR_REQUIRE_POSTGRES=1, but neither PATH nor /usr/lib/postgresql has initdb.")
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="advisor-pg-") as directory:
        yield from _running_server(binaries, Path(directory))


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Return what makes an empty database of a kind, "sqlite" or "postgres", and returns its URL."""

    def make(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('database')}/advisor.db"
        return _new_postgres_database(request.getfixturevalue("postgres_server"))

    return make


@pytest.fixture
def sqlite_url(new_database: Callable[[str], str]) -> str:
    return new_database("sqlite")


@pytest.fixture
def postgres_url(new_database: Callable[[str], str]) -> str:
    return new_database("postgres")


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """Return the URL of an empty database of each kind."""
    return new_database(request.param)


def _new_postgres_database(server: str) -> str:
    import psycopg

    name = f"advisor_{uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


def _postgres_binaries() -> Path | None:
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in on_path + installed if (path / "postgres").exists()), None)


def _running_server(binaries: Path, directory: Path) -> Iterator[str]:
    as_user = _unprivileged(directory)
    password_file = directory / "password"
    password_file.write_text(PASSWORD)
    data = directory / "data"
    initdb: list[str | Path] = [binaries / "initdb", "-D", data, "-U", "advisor", f"--pwfile={password_file}"]
    initdb += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=directory, **as_user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    postgres: list[str | Path] = [binaries / "postgres", "-D", data, "-k", directory, "-p", str(port)]
    postgres += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=50"]
    with (directory / "log").open("w") as log:
        server = subprocess.Popen(postgres, stdout=log, stderr=log, cwd=directory, **as_user)
    try:
        url = f"postgresql://advisor:{PASSWORD}@127.0.0.1:{port}"
        _await(f"{url}/postgres")
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def _unprivileged(directory: Path) -> dict[str, Any]:
    """Return how to start a process that is not root's, as the server demands, with ``directory`` its own."""
    if os.getuid() != 0:
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    os.chown(directory, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _await(url: str) -> None:
    import psycopg

    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
