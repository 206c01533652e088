"""The dashboard over the advisor's database, asked through its own interface."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.request import urlopen

import pytest

from advisor.errors import AdvisorError, StorageError
from advisor.records.trials import Trial, TrialState
from advisor.tuning.board import open_board
from advisor.tuning.dashboard import serve_dashboard
from tests.contracts import samples
from tests.contracts.board import SPACE, VALUES

NOTE = "The best of 3 trials reached 0.97. " * 100

PROGRAM = """
import sys
from advisor.tuning.dashboard import serve_dashboard
serve_dashboard(sys.argv[1], port=0, ready=lambda address: print(address, flush=True))
print("done", flush=True)
"""


@contextmanager
def dashboard(url: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Yield the address and the process of a dashboard, as the command starts it."""
    command = [sys.executable, "-c", PROGRAM, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def answer(address: str, path: str) -> Any:
    with urlopen(f"{address}api/{path}", timeout=30) as response:
        return json.load(response)


def fill(url: str) -> None:
    """Write a study of each kind of trouble: one with all ends, one with pruned trials alone."""
    with closing(open_board(url)) as board:
        board.open(samples.named("all ends"), SPACE, 0)
        for state in (TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED):
            number = board.ask_at("all ends", VALUES)
            board.report("all ends", number, 10, float("nan"))
            board.tell("all ends", number, state, 0.97, "because")
        board.set_note("all ends", NOTE)
        board.open(samples.named("valueless"), SPACE, 0)
        for number in range(3):
            trial = Trial(number, 64, samples.plan(), TrialState.INFEASIBLE, "diverged", ())
            board.add("valueless", trial, None)
        board.open(samples.named("empty"), SPACE, 0)


def test_the_dashboard_serves_every_study(sqlite_url: str) -> None:
    fill(sqlite_url)
    with dashboard(sqlite_url) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        summaries = answer(address, "studies")["study_summaries"]
        ids = {summary["study_name"]: summary["study_id"] for summary in summaries}
        assert ids.keys() == {"all ends", "valueless", "empty"}

        ends = answer(address, f"studies/{ids['all ends']}")
        assert ends["note"]["body"] == NOTE
        assert [trial["state"] for trial in ends["trials"]] == ["Complete", "Pruned", "Fail"]
        said = [{item["key"]: item["value"] for item in trial["user_attrs"]} for trial in ends["trials"]]
        assert [attributes["outcome"] for attributes in said] == ["complete", "infeasible", "failed"]

        valueless = answer(address, f"studies/{ids['valueless']}")
        assert [trial["state"] for trial in valueless["trials"]] == ["Pruned"] * 3
        assert valueless["best_trials"] == []
        assert answer(address, f"studies/{ids['empty']}")["trials"] == []
        with closing(open_board(sqlite_url)) as board:
            board.open(samples.named("begun meanwhile"), SPACE, 0)
        summaries = answer(address, "studies")["study_summaries"]
        assert "begun meanwhile" in {summary["study_name"] for summary in summaries}

        with urlopen(address, timeout=30) as page:
            assert b"<html" in page.read().lower()

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (out, err, process.returncode) == ("done\n", "", 0)


def test_a_port_in_use_is_told(sqlite_url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AdvisorError, match=f"port {port}: another program uses it .* --port"):
            serve_dashboard(sqlite_url, port=port)


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("127.0.0.1", 65536, "Port 65536 does not exist"),
        ("127.0.0.1", -1, "Port -1 does not exist"),
        ("192.0.2.1", 8080, "192.0.2.1, port 8080: cannot assign"),
    ],
)
def test_a_place_that_cannot_be_listened_at_is_told(sqlite_url: str, host: str, port: int, said: str) -> None:
    with pytest.raises(AdvisorError, match=said):
        serve_dashboard(sqlite_url, host, port)


def test_a_database_that_cannot_be_used_is_told() -> None:
    with pytest.raises(StorageError, match="in memory"):
        serve_dashboard("sqlite://")
