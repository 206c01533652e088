"""A workload is found by file, by module, by name and by value, and what cannot be found is told."""

import sys
import textwrap
from dataclasses import replace

import cloudpickle
import pytest

from advisor import Float, Target, Workload
from advisor.errors import WorkloadError
from advisor.records.requests import WorkloadReference
from advisor.training.loading import load_workload

PLAIN = """
    from advisor import Workload
    from {sibling} import NAME
    workload = Workload(NAME, build_model=print, data=dict)
    other = Workload("other", build_model=print, data=dict)
    number = 3
"""


@pytest.fixture(autouse=True)
def forgotten_imports(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a workload in ``mine.py`` that imports its neighbour."""
    write(tmp_path, "mine", PLAIN.format(sibling=f"beside_{tmp_path.name}"))
    write(tmp_path, f"beside_{tmp_path.name}", 'NAME = "first"')
    return tmp_path


def write(folder, name, text):
    (folder / f"{name}.py").write_text(textwrap.dedent(text))


def load(source, **rest):
    return load_workload(WorkloadReference(str(source), **rest))


def test_a_file_is_loaded_with_its_neighbours(folder):
    assert load(folder / "mine.py").name == "first"
    assert load(f"{folder}/mine.py:other").name == "other"


def test_a_module_is_loaded_from_the_working_directory(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert load("mine:workload").name == "first"


def test_a_file_named_like_a_library_does_not_replace_it(tmp_path):
    import json

    write(tmp_path, "json", 'from advisor import Workload\nworkload = Workload("mine", print, dict)')
    assert load(tmp_path / "json.py").name == "mine"
    assert sys.modules["json"] is json


def test_a_workload_may_be_sent_by_value():
    sent = Workload("sent", build_model=lambda hp: None, data=dict)
    assert load("sent", pickled=cloudpickle.dumps(sent)).name == "sent"


def test_the_bundled_digits_are_there():
    workload = load("advisor.training.digits:workload")
    assert (workload.name, workload.optimizer) == ("digits", "nesterov")
    assert workload.target is not None
    assert (workload.target.metric, workload.target.maximize) == ("loss", False)
    train, validation = (workload.data()[name] for name in ("train", "validation"))
    assert (train[0].shape, validation[0].shape) == ((1397, 64), (400, 64))
    assert (train[0].min(), train[0].max()) == (0.0, 1.0)
    assert set(train[1]) == set(validation[1]) == set(range(10))


def test_a_study_replaces_the_target_and_adds_to_the_search_space(folder):
    target, momentum = Target("loss", at_most=0.1), Float(0.0, 0.9)
    workload = load(folder / "mine.py", target=target, search_space={"momentum": momentum})
    assert workload == replace(load(folder / "mine.py"), target=target, search_space={"momentum": momentum})


FAULTS = {
    "nowhere.py": "There is no file .*nowhere.py",
    "no_such_package.module:workload": "There is no module 'no_such_package', neither installed nor in",
    "advisor.nothing:workload": "There is no module 'advisor.nothing'",
    "digits": "'digits' names no workload. Write file.py, file.py:name or package.module:name",
    "mine.py:third": "mine.py:third has no name 'third'. It has other, workload; write .*mine.py:other",
    "mine.py:number": "number in .*mine.py:number is of type int, not a Workload",
    "empty.py": "no name 'workload'. It has no Workload object at all",
    "raising.py": r"Importing raising.py failed \(raising.py:3\). ZeroDivisionError: division by zero",
    "misspelt.py": r"Importing misspelt.py failed \(misspelt.py:1\). SyntaxError",
    "leaving.py": r"Importing leaving.py failed \(leaving.py:2\). SystemExit: 3",
    "lacking.py": r"Importing lacking.py failed \(lacking.py:1\). ModuleNotFoundError: .*'no_such_thing'",
}


@pytest.mark.parametrize("source", FAULTS)
def test_what_cannot_be_loaded_is_told(source, folder, monkeypatch):
    monkeypatch.chdir(folder)
    write(folder, "empty", "")
    write(folder, "raising", "def fall():\n    pass\nfall(1 / 0)")
    write(folder, "misspelt", "workload = = 3")
    write(folder, "leaving", "import sys\nsys.exit(3)")
    write(folder, "lacking", "import no_such_thing")
    with pytest.raises(WorkloadError, match=FAULTS[source]) as raised:
        load(source)
    assert "\n" not in str(raised.value)


def test_a_file_that_failed_may_be_mended_and_loaded(folder):
    write(folder, "mended", "1 / 0")
    with pytest.raises(WorkloadError):
        load(folder / "mended.py")
    write(folder, "mended", 'from advisor import Workload\nworkload = Workload("well", print, dict)')
    assert load(folder / "mended.py").name == "well"


def test_bytes_that_hold_no_workload_are_told():
    with pytest.raises(WorkloadError, match="Unpacking the workload 'sent' failed"):
        load("sent", pickled=b"nothing")
    with pytest.raises(WorkloadError, match="sent is of type int"):
        load("sent", pickled=cloudpickle.dumps(3))
