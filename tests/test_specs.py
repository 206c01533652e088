"""Study files: what is right comes through unchanged, what is wrong is told all at once."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.errors import SpecError
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes
from advisor.records.search_space import Categorical, Float, Int, Role
from advisor.records.study_file import StudyFile
from advisor.records.target import Target
from advisor.specs import load_study_file

WORKLOAD = 'workload = "package.module:name"\n'
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def load(folder: Path, text: str) -> StudyFile:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return load_study_file(path)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as raised:
        load(folder, text)
    first, *lines = str(raised.value).splitlines()
    assert first == f"{folder / 'study.toml'} has {len(lines)} fault{'s' * (len(lines) > 1)}:"
    return [line.strip() for line in lines]


def test_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "digits.py").touch()
    (tmp_path / "studies").mkdir()
    text = """
# How do steps to target fall with the batch size?
workload = "../examples/digits.py:small"
target = { metric = "accuracy", at_least = 0.97 }
batch_sizes = { min = 8, max = 4096 }

[search_space]
learning_rate = { role = "nuisance", low = 1e-3, high = 1.0, scale = "log", default = 0.1 }
momentum = { role = "nuisance", low = 0.5, high = 0.999, scale = "log_one_minus" }
weight_decay = { role = "fixed", value = 1e-4 }
units = { role = "scientific", low = 16, high = 256, scale = "log", type = "int" }
activation = { choices = ["relu", "gelu"], default = "gelu" }
dropout.low = 0
dropout.high = 0.5

[budget]
trials_per_batch_size = 8
max_train_steps = 5000
max_examples_per_trial = 2_000_000
seeds = 3
trials = 20

[cost]
price_per_device_hour = 2.5
currency = "EUR"
power_w = 350
upfront = 1000
"""
    assert load(tmp_path / "studies", text) == StudyFile(
        workload=f"{tmp_path / 'examples' / 'digits.py'}:small",
        target=Target("accuracy", at_least=0.97),
        batch_sizes=BatchSizes(minimum=8, maximum=4096),
        search_space={
            "learning_rate": Float(1e-3, 1.0, default=0.1, log=True),
            "momentum": Float(0.5, 0.999, log_one_minus=True),
            "units": Int(16, 256, log=True),
            "activation": Categorical(["relu", "gelu"], default="gelu"),
            "dropout": Float(0.0, 0.5),
        },
        fixed={"weight_decay": 1e-4},
        roles={
            "learning_rate": Role.NUISANCE,
            "momentum": Role.NUISANCE,
            "weight_decay": Role.FIXED,
            "units": Role.SCIENTIFIC,
            "activation": Role.NUISANCE,
            "dropout": Role.NUISANCE,
        },
        trials_per_batch_size=8,
        max_examples_per_trial=2_000_000,
        seeds=3,
        trials=20,
        max_train_steps=5000,
        prices=Prices(2.5, "EUR", 350.0, upfront_cost=1000.0),
    )


def test_what_a_file_leaves_open_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, WORKLOAD) == StudyFile("package.module:name")


def test_a_listed_choice_of_batch_sizes(tmp_path: Path) -> None:
    study_file = load(tmp_path, WORKLOAD + "batch_sizes = [256, 64]\n[cost]\npower_w = 10")
    assert study_file.batch_sizes == BatchSizes(listed=(64, 256))
    assert study_file.prices == Prices(power_w=10.0)


def test_all_faults_are_told_together(tmp_path: Path) -> None:
    text = """
target = { metric = "accuracy", at_leest = 0.97 }
batch_sizes = { min = 0, max = 64 }
[search_space]
learning_rate = { role = "nuisence", low = 1.0, high = 0.1 }
[budget]
trials = 2.5
[cost]
price_per_device_hour = -1
"""
    assert faults(tmp_path, text) == [
        'workload: missing; valid is the path of a Python file, as in "model.py" or "model.py:name", '
        'or "package.module:name"',
        "target.at_leest: unknown key; did you mean at_least?",
        "target: give exactly one of at_least and at_most, the value that the metric has to reach",
        "batch_sizes.min: got 0; valid is a whole number of at least 1",
        'search_space.learning_rate.role: got "nuisence"; valid is one of "scientific", "nuisance", "fixed"',
        "search_space.learning_rate: Float got low=1.0 and high=0.1; low must be below high.",
        "budget.trials: got 2.5; valid is a whole number of at least 1",
        "cost.price_per_device_hour: got -1; valid is a number of at least 0",
    ]


ENTRY_FAULTS = [
    ("batch_size = { low = 8, high = 64, type = 'int' }", "batch_size: batch size governs the speed"),
    ("Batch-Size = { role = 'fixed', value = 8 }", "Batch-Size: batch size governs the speed"),
    ("momentum = 0.9", "momentum: got 0.9; valid is a table such as"),
    ("x = { role = 'fixed' }", "x.value: missing; valid is a text, a finite number, true or false"),
    ("x = { role = 'fixed', low = 0.1, high = 0.2 }", 'x.role: got "fixed" for a range'),
    ("x = { role = 'nuisance', value = 1 }", 'x.role: got "nuisance" for one value'),
    ("x = { value = 1, high = 2 }", "x.high: does not go with value"),
    ("x = { choices = [1, 2], scale = 'log' }", "x.scale: does not go with choices"),
    ("x = { choices = [] }", "x.choices: got []; valid is a list of different"),
    ("x = { choices = ['a', 'a'] }", 'x.choices: got ["a", "a"]; valid is a list of different'),
    ("x = { choices = ['a', [1]] }", "x.choices: got"),
    ("x = { choices = ['a', 'b'], default = 'c' }", 'x.default: got "c"; valid is one of ["a", "b"]'),
    ("x = { value = [1] }", "x.value: got [1]; valid is a text"),
    ("x = { value = nan }", "x.value: got NaN"),
    ("x = { high = 1.0 }", "x.low: missing; valid is a finite number"),
    ("x = { low = true, high = 1.0 }", "x.low: got true; valid is a finite number"),
    ("x = { low = 0.0, high = inf }", "x.high: got Infinity; valid is a finite number"),
    ("x = { low = 0.0, high = 1.0, scale = 'log' }", "x: Float with log=True got low=0.0"),
    ("x = { low = 0.0, high = 1.0, scale = 'log_one_minus' }", "x: Float with log_one_minus=True got high"),
    ("x = { low = 0.0, high = 1.0, default = 2 }", "x.default: got 2; valid is a value from low to high"),
    ("x = { low = 1, high = 8 }", "x.type: low and high are whole numbers; say which is meant"),
    ("x = { low = 1.5, high = 8, type = 'int' }", "x.low: got 1.5; valid is a whole number"),
    (
        "x = { low = 1, high = 8, type = 'int', scale = 'log_one_minus' }",
        'x.scale: "log_one_minus" is for real',
    ),
    ("x = { low = 9, high = 8, type = 'int' }", "x: Int got low=9 and high=8"),
    ("x = { low = 0.0, high = 1.0, sclae = 'log' }", "x.sclae: unknown key; did you mean scale?"),
    ("x = { low = 0.0, high = 1.0, min = 1 }", "x.min: unknown key; valid are role, value"),
]


@pytest.mark.parametrize(("entry", "fault"), ENTRY_FAULTS)
def test_faults_of_a_hyperparameter(tmp_path: Path, entry: str, fault: str) -> None:
    told = faults(tmp_path, f"{WORKLOAD}[search_space]\n{entry}")
    assert len(told) == 1
    assert told[0].startswith(f"search_space.{fault}")


TOP_FAULTS = [
    ("workload = 5", 'workload: got 5; valid is the path of a Python file, as in "model.py"'),
    ("workload = 'package.module'", 'workload: got "package.module"; valid is the path'),
    ("workload = 'other.toml'", 'workload: got "other.toml"; valid is the path'),
    ("workload = 'model.py:not a name'", 'workload: got "model.py:not a name"; valid is the path'),
    ("workload = 'absent.py:name'", 'workload: got "absent.py:name", which is '),
    (WORKLOAD + "target = 0.9", "target: got 0.9; valid is a table such as { metric"),
    (WORKLOAD + "target = { at_most = 1 }", "target.metric: missing; valid is a text in quotes"),
    (WORKLOAD + "target = { metric = 'loss', at_most = '1' }", 'target.at_most: got "1"; valid is a finite'),
    (WORKLOAD + "target = { metric = 'loss', at_most = 1, at_least = 1 }", "target: give exactly one of"),
    (WORKLOAD + "batch_sizes = 64", "batch_sizes: got 64; valid is a table such as { min = 8, max = 4096 }"),
    (WORKLOAD + "batch_sizes = []", "batch_sizes: got []; valid is a list of different whole numbers"),
    (WORKLOAD + "batch_sizes = [8, 8]", "batch_sizes: got [8, 8]; valid is a list of different"),
    (WORKLOAD + "batch_sizes = [8, true]", "batch_sizes: got [8, true]; valid is a list"),
    (
        WORKLOAD + "batch_sizes = { min = 8, max = 4 }",
        "batch_sizes.max: got 4; valid is a whole number of at",
    ),
    (WORKLOAD + "trials = 5", "trials: unknown key; it belongs in [budget]"),
    (WORKLOAD + "[cost]\ntarget = 5", "cost.target: unknown key; it belongs at the top of the file, before"),
    (WORKLOAD + "[cost]\ncurrency = ''", 'cost.currency: got ""; valid is a text in quotes'),
    (WORKLOAD + "[bugdet]\ntrials = 5", "bugdet: unknown key; did you mean budget?"),
    (WORKLOAD + "xyzzy = 5", "xyzzy: unknown key; valid are workload, target, batch_sizes"),
    (WORKLOAD + "search_space = 5", "search_space: got 5; valid is a table such as { learning_rate = {"),
]


@pytest.mark.parametrize(("text", "fault"), TOP_FAULTS)
def test_faults_outside_the_search_space(tmp_path: Path, text: str, fault: str) -> None:
    told = faults(tmp_path, text)
    assert len(told) == 1
    assert told[0].startswith(fault)


def test_a_long_value_is_shown_shortened(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, f"{WORKLOAD}batch_sizes = {[0] * 1000}")
    assert len(told) < 200


@given(chosen=st.sets(st.sampled_from(ENTRY_FAULTS), min_size=1, max_size=8))
@same_folder
def test_no_fault_hides_another(tmp_path: Path, chosen: set[tuple[str, str]]) -> None:
    """Entries are given names of their own, so that every one of them stands in the file once."""
    lines, expected = [], []
    for number, (entry, fault) in enumerate(sorted(chosen)):
        own = f"x{number}" if entry.startswith("x ") else ""
        lines.append(entry.replace("x", own, 1) if own else entry)
        expected.append("search_space." + (fault.replace("x", own, 1) if own else fault))
    told = faults(tmp_path, WORKLOAD + "[search_space]\n" + "\n".join(lines))
    assert len(told) == len(expected)
    assert all(line.startswith(fault) for line, fault in zip(told, expected, strict=True))


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"study\.toml is not valid TOML: .*\(at line 2, column 12\)"):
        load(tmp_path, WORKLOAD + "target = { ]")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"There is no study file .*\. Name one that exists"):
        load_study_file(tmp_path / "absent.toml")
    with pytest.raises(SpecError, match=r"cannot be read: Is a directory\."):
        load_study_file(tmp_path)
    (tmp_path / "latin.toml").write_bytes('workload = "é.py"'.encode("latin-1"))
    with pytest.raises(SpecError, match="is not text in UTF-8"):
        load_study_file(tmp_path / "latin.toml")
    with pytest.raises(SpecError, match="is not valid TOML"):
        load(tmp_path, "a = " + "[" * 100_000)


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(b"\xef\xbb\xbf" + WORKLOAD.replace("\n", "\r\n").encode())
    assert load_study_file(tmp_path / "study.toml").workload == "package.module:name"


# Files made of parts that are right, and files made of anything.

names = st.from_regex(r"[a-z][a-z_]{0,10}", fullmatch=True).filter(lambda name: "batch" not in name)
counts = st.integers(1, 10**9)
amounts = st.floats(0, 1e9) | st.integers(0, 10**9)
reals = st.floats(-1e9, 1e9)
scalars = st.text(max_size=8) | reals | st.integers(-(10**9), 10**9) | st.booleans()


@st.composite
def floats(draw: st.DrawFn) -> Float:
    low, high = sorted(draw(st.lists(st.floats(1e-9, 0.999), min_size=2, max_size=2, unique=True)))
    scale = draw(st.sampled_from([{}, {"log": True}, {"log_one_minus": True}]))
    return Float(low, high, draw(st.none() | st.floats(low, high)), **scale)


@st.composite
def ints(draw: st.DrawFn) -> Int:
    low, high = sorted(draw(st.tuples(counts, counts)))
    return Int(low, high, draw(st.none() | st.integers(low, high)), log=draw(st.booleans()))


@st.composite
def categoricals(draw: st.DrawFn) -> Categorical:
    choices = draw(st.lists(scalars, min_size=1, max_size=4, unique=True))
    return Categorical(choices, draw(st.none() | st.sampled_from(choices)))


@st.composite
def study_files(draw: st.DrawFn) -> StudyFile:
    space = draw(st.dictionaries(names, floats() | ints() | categoricals(), max_size=4))
    fixed = {
        key: value
        for key, value in draw(st.dictionaries(names, scalars, max_size=3)).items()
        if key not in space
    }
    searched_role = st.sampled_from([Role.SCIENTIFIC, Role.NUISANCE])
    minimum = draw(counts)
    limits = ("trials_per_batch_size", "max_examples_per_trial", "seeds", "trials", "max_train_steps")
    return StudyFile(
        workload="package.module:name",
        target=draw(st.none() | st.builds(Target, names, reals) | st.builds(Target, names, at_most=reals)),
        batch_sizes=draw(
            st.none()
            | st.builds(BatchSizes, st.just(minimum), st.none() | st.integers(minimum, 2 * minimum))
            | st.sets(counts, min_size=1, max_size=5).map(
                lambda sizes: BatchSizes(listed=tuple(sorted(sizes)))
            )
        ),
        search_space=space,
        fixed=fixed,
        roles={name: draw(searched_role) for name in space} | dict.fromkeys(fixed, Role.FIXED),
        prices=draw(
            st.none()
            | st.builds(Prices, st.none() | amounts, names, st.none() | amounts, st.none() | amounts)
        ),
        **{limit: draw(st.none() | counts) for limit in limits},
    )


def written(study_file: StudyFile) -> str:
    """Write a study file in the longest way: every key that has a value."""
    entries = {
        name: {"role": study_file.roles[name], "value": value} for name, value in study_file.fixed.items()
    }
    for name, distribution in study_file.search_space.items():
        entries[name] = {"role": study_file.roles[name], **_entry(distribution)}
    target, sizes, prices = study_file.target, study_file.batch_sizes, study_file.prices
    limits = ("trials_per_batch_size", "max_examples_per_trial", "seeds", "trials", "max_train_steps")
    document = {
        "workload": study_file.workload,
        "target": target and vars(target),
        "batch_sizes": sizes and (list(sizes.listed) or {"min": sizes.minimum, "max": sizes.maximum}),
        "search_space": entries,
        "budget": {limit: getattr(study_file, limit) for limit in limits},
        "cost": prices and _cost(prices),
    }
    return "\n".join(f"{key} = {_toml(value)}" for key, value in document.items() if value is not None)


def _cost(prices: Prices) -> Mapping[str, object]:
    return {
        "price_per_device_hour": prices.price_per_device_hour,
        "currency": prices.currency,
        "power_w": prices.power_w,
        "upfront": prices.upfront_cost,
    }


def _entry(distribution: Float | Int | Categorical) -> Mapping[str, object]:
    if isinstance(distribution, Categorical):
        return {"choices": list(distribution.choices), "default": distribution.default}
    shared = {"low": distribution.low, "high": distribution.high, "default": distribution.default}
    if isinstance(distribution, Float):
        return {**shared, "type": "float", "scale": distribution.scale.value}
    return {**shared, "type": "int", "scale": "log" if distribution.log else "linear"}


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        given_items = {key: item for key, item in value.items() if item is not None}
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in given_items.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if isinstance(value, int) or set(text) & set(".einf") else text + ".0"


@given(study_file=study_files())
@same_folder
def test_what_is_written_is_what_is_read(tmp_path: Path, study_file: StudyFile) -> None:
    assert load(tmp_path, written(study_file)) == study_file


anything = st.recursive(
    scalars | st.floats(allow_nan=True, allow_infinity=True),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(names | st.sampled_from(["low", "role"]), inner, max_size=3)
    ),
    max_leaves=8,
)
sections = st.sampled_from(["workload", "target", "batch_sizes", "search_space", "budget", "cost", "other"])


@given(document=st.dictionaries(sections, anything))
@same_folder
def test_whatever_a_file_holds_is_read_or_refused_in_words(
    tmp_path: Path, document: dict[str, object]
) -> None:
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in document.items())
    try:
        load(tmp_path, text)
    except SpecError as error:
        assert "is not valid TOML" not in str(error)
