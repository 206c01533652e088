"""Several processes on one new database lose nothing, and the trials of a dead one do not run for ever."""

import os
import subprocess
import sys
import time

import psutil  # type: ignore[import-untyped]
import pytest

from advisor.records.trials import TrialState
from advisor.storage import owners
from advisor.storage.store import open_store
from tests.contracts import samples
from tests.storage.worker import POINTS
from tests.tuning.optuna_view import optuna_storage

PROCESSES = 3
TRIALS = 3
STUDY = samples.study().name


def test_processes_that_begin_at_once_lose_nothing(database_url: str) -> None:
    command = [sys.executable, "-m", "tests.storage.worker", database_url, str(TRIALS)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    printed = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    numbers = sorted(int(number) for lines in printed for number in lines)
    assert numbers == list(range(PROCESSES * TRIALS))

    store = open_store(database_url)
    trials = store.trials(STUDY)
    assert [trial.number for trial in trials] == numbers
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert {len(trial.curve) for trial in trials} == {POINTS}
    assert len(store.studies()) == 1
    store.close()
    with optuna_storage(database_url) as storage:
        kept = storage.get_all_trials(storage.get_study_id_from_name(STUDY))
    assert [trial.number for trial in kept] == numbers
    assert [trial.value for trial in kept] == [number / 100 for number in numbers]
    assert {len(trial.intermediate_values) for trial in kept} == {POINTS}


def test_a_trial_of_a_killed_process_is_interrupted(database_url: str) -> None:
    store = open_store(database_url)
    store.open_study(samples.study())
    code = f"""
import time
from advisor.storage.store import open_store
from tests.contracts import samples
store = open_store({database_url!r})
store.start_trial({STUDY!r}, 0, samples.plan())
store.record_point({STUDY!r}, 0, samples.point(10))
print("running", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "running\n"
        assert store.trials(STUDY)[0].state is TrialState.RUNNING
        child.kill()
        # Dead but not yet waited for: a parent may leave it so for long.
        _await_zombie(child.pid)
        (trial,) = store.trials(STUDY)
        child.wait()
    assert trial.state is TrialState.INTERRUPTED
    assert str(child.pid) in trial.reason
    assert len(trial.curve) == 1
    assert store.trials(STUDY) == [trial]
    store.close()


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        (lambda host, pid, start_s: f"elsewhere/{pid}/{start_s}", False),
        (lambda host, pid, start_s: f"elsewhere/{2**22 + 1}/0.00", False),
        (lambda host, pid, start_s: f"{host}/{2**22 + 1}/{start_s}", True),
        (lambda host, pid, start_s: f"{host}/{pid}/{float(start_s) - 60:.2f}", True),
        (lambda host, pid, start_s: f"{host}/{pid}/{start_s}", False),
    ],
    ids=["another host", "dead on another host", "no such process", "number used again", "alive"],
)
def test_an_owner_is_told_by_host_process_and_start(change: object, dead: bool) -> None:
    assert callable(change)
    assert owners.is_dead(change(*owners.this_process().rsplit("/", 2))) is dead


def test_a_running_process_knows_itself() -> None:
    assert owners.shown(owners.this_process()).startswith(f"process {os.getpid()} on ")
    first = owners.this_process()
    time.sleep(0.05)
    assert owners.this_process() == first


def _await_zombie(pid: int) -> None:
    deadline = time.monotonic() + 10
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
