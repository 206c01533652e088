"""A CSV file becomes runs, or one message that names its faults by line."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import SpecError
from advisor.records.imported import ImportedRun
from advisor.records.scaling import Crossing
from advisor.specs.curve_columns import COLUMNS
from advisor.specs.curve_file import load_curve_file

Load = Callable[..., tuple[ImportedRun, ...]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes a file and reads it; ``where`` and the mapped columns follow."""

    def written(text: str | bytes, where: Mapping[str, str] | None = None, **columns: str) -> object:
        file = tmp_path / "curve.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_curve_file(file, columns, where or {})

    return written  # type: ignore[return-value]


def exact(steps: float) -> Crossing:
    return Crossing(steps, steps, steps)


def refusal(load: Load, text: str | bytes, where: Mapping[str, str] | None = None, **columns: str) -> str:
    with pytest.raises(SpecError) as seen:
        load(text, where, **columns)
    return re.sub(r"\S*/curve\.csv", "curve.csv", str(seen.value))


def test_a_line_is_a_run(load: Load) -> None:
    text = "seed,batch_size,steps_to_target,learning_rate,time_per_step_s,task,note\n7,64,1200,0.1,2e-3,a,x\n"
    (run,) = load(text)
    assert run == ImportedRun(64, exact(1200), "a", 0.1, "7", 0.002, {"note": "x"})
    assert load("batch_size,steps_to_target\n64.0,1.2e3\n") == (ImportedRun(64, exact(1200)),)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_dialects_comments_and_empty_lines_are_read_alike(
    load: Load, delimiter: str, end: str, mark: str
) -> None:
    lines = [
        "# a, comment; first",
        "batch_size|steps_to_target|note",
        "",
        ' 8 | 100 |"a, b; c\t|"',
        "# x",
        "|||",
    ]
    text = mark + end.join(line.replace("|", delimiter) for line in lines[:-1]) + end + delimiter * 2 + end
    (run,) = load(text)
    assert (run.batch_size, run.crossing) == (8, exact(100))
    assert run.unread["note"].startswith("a, b; c")


def test_examples_and_epochs_become_steps(load: Load) -> None:
    (run,) = load("batch_size,examples_to_target\n64,6400\n")
    assert run.crossing == exact(100)
    (run,) = load("batch_size,epochs_to_target,examples_per_epoch\n64,2.5,1280\n")
    assert run.crossing == exact(50)


def test_steps_are_read_where_a_file_has_examples_too_unless_these_are_named(load: Load) -> None:
    text = "batch_size,examples_to_target,steps_to_target,seen\n64,6400,7,640\n"
    assert load(text)[0].crossing == exact(7)
    assert load(text, examples_to_target="seen")[0].crossing == exact(10)
    assert load(text, batch_size="steps_to_target")[0].batch_size == 7


@pytest.mark.parametrize(
    ("reached", "crossing"),
    [("true", exact(30)), ("Yes", exact(30)), ("", exact(30))]
    + [(word, Crossing(None, 30.0, None)) for word in ("false", "No", "0")],
)
def test_a_run_that_did_not_reach_the_target_is_censored_at_its_steps(
    load: Load, reached: str, crossing: Crossing
) -> None:
    assert load(f"batch_size,steps_to_target,reached\n8,30,{reached}\n")[0].crossing == crossing


def test_an_empty_cell_was_not_reached_within_max_train_steps(load: Load) -> None:
    head = "batch_size,steps_to_target,max_train_steps,reached\n"
    assert [run.crossing for run in load(head + "8,30,500,\n8,,500,\n8,,600,false\n")] == [
        exact(30),
        Crossing(None, 500.0, None),
        Crossing(None, 600.0, None),
    ]
    told = refusal(load, head + "8,,,\n8,,500,true\n")
    assert "line 2: steps_to_target: empty; where the target was not reached, say in a column" in told
    assert "line 3: steps_to_target: empty, although the target was reached" in told


@given(steps=st.floats(1, 1e6), every=st.floats(0.5, 1e4))
def test_evaluations_bracket_the_crossing(
    tmp_path_factory: pytest.TempPathFactory, steps: float, every: float
) -> None:
    file = tmp_path_factory.getbasetemp() / "bracket.csv"
    file.write_text(f"batch_size,steps_to_target,evaluated_every\n8,{steps},{every}\n")
    found = load_curve_file(file, {}, {})[0].crossing
    assert found.steps is not None
    assert found.high == steps
    assert found.low == max(steps - every, 0)
    assert found.low < found.steps < found.high


def test_all_faults_are_told_together_by_line(load: Load) -> None:
    told = refusal(
        load,
        "# about\nbatch_size,steps_to_target,learning_rate,reached\n"
        "8,100,0.1,true\n8.5,-3,0.1,true\n\n16,nan,,maybe\n32,100\n,1e99,0,\n",
    )
    assert told.splitlines() == [
        "curve.csv has 8 faults:",
        '  line 4: batch_size: got "8.5"; valid is a whole number of at least 1 up to 1,000,000,000,000',
        '  line 4: steps_to_target: got "-3"; valid is a finite number above 0 up to 1,000,000,000,000,000',
        '  line 6: reached: got "maybe"; valid is true or false',
        '  line 6: steps_to_target: got "nan"; valid is a finite number above 0 up to 1,000,000,000,000,000',
        "  line 7: has 2 cells; the header has 4",
        "  line 8: batch_size: empty; valid is a whole number of at least 1 up to 1,000,000,000,000",
        '  line 8: steps_to_target: got "1e99"; valid is a finite number above 0 up to 1,000,000,000,000,000',
        '  line 8: learning_rate: got "0"; valid is a finite number above 0 up to 1,000,000,000,000,000',
    ]


def test_faults_are_shared_and_counted(load: Load) -> None:
    told = refusal(load, "batch_size,steps_to_target\n" + "8,x\n" * 30)
    assert told.splitlines()[1].startswith('  lines 2, 3, 4 and 27 more: steps_to_target: got "x"')
    told = refusal(load, "batch_size,steps_to_target\n" + "".join(f"8,x{n}\n" for n in range(30)))
    assert told.splitlines()[0] == "curve.csv has 30 faults:"
    assert len(told.splitlines()) == 12
    assert told.splitlines()[-1] == "  and 20 more"


def test_missing_columns_are_named_with_those_that_there_are(load: Load) -> None:
    told = refusal(load, "size,median\n8,2\n")
    assert told == (
        "curve.csv has no column batch_size and no steps_to_target (or examples_to_target or "
        "epochs_to_target). Its columns are size, median. Add what is missing, or name the column that holds "
        "it: --column batch_size=NAME --column steps_to_target=NAME."
    )
    told = refusal(load, "batch_size,epochs_to_target\n8,2\n")
    assert told.startswith("curve.csv has no column examples_per_epoch. Its columns are")


def test_epochs_are_not_taken_for_examples(load: Load) -> None:
    told = refusal(load, "batch_size,examples_to_target,unit\n8,40,Epochs\n8,12,epochs\n8,4,samples\n")
    assert "lines 2 and 3: examples_to_target: counts epochs, says unit;" in told
    assert "line 4: examples_to_target: less than one batch of batch_size" in told
    text = "batch_size,examples_to_target,unit,epochs_of\n8,40,epochs,16\n"
    (run,) = load(text, epochs_to_target="examples_to_target", examples_per_epoch="epochs_of")
    assert run.crossing == exact(80)


def test_only_some_lines_are_kept(load: Load) -> None:
    text = "batch_size,steps_to_target,kind,of\n8,4,a,x\n16,wrong,b,x\n32,2,a,y\n"
    assert [run.batch_size for run in load(text, {"kind": "a"})] == [8, 32]
    assert [run.batch_size for run in load(text, {"kind": "a", "of": "y"})] == [32]
    assert 'no line to keep with kind=c; there are "a", "b".' in refusal(load, text, {"kind": "c"})
    assert "no column 'sort'. Its columns are batch_size," in refusal(load, text, {"sort": "c"})


def test_the_same_run_twice_is_a_sign_of_several_curves(load: Load) -> None:
    text = "batch_size,steps_to_target,seed,model\n8,4,0,a\n8,5,0,b\n"
    told = refusal(load, text)
    assert told.startswith("curve.csv has 1 fault:\n  line 3: the same batch size, learning rate and seed")
    assert [run.task for run in load(text, task="model")] == ["a", "b"]
    assert len(load("batch_size,steps_to_target\n8,4\n8,5\n")) == 2


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"batchsize": "b"}, "'batchsize' is nothing that is read; did you mean batch_size?"),
        ({"q": "b"}, f"valid are {', '.join(COLUMNS)}."),
        ({"seed": "c"}, "curve.csv has no column 'c'. Its columns are b, steps_to_target."),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(load: Load, columns: Mapping[str, str], words: str) -> None:
    assert words in refusal(load, "b,steps_to_target\n8,4\n", **columns)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; its first line has to name the columns."),
        ("# nothing\n\n", "is empty; its first line"),
        ("batch_size,steps_to_target\n", "has no line below its header"),
        ("batch_size,steps_to_target,seed,seed\n8,4,1,2\n", "more than one column seed"),
        (b"\xff\xfeb\x00", "is not text in UTF-8; save it as CSV in that encoding."),
        ('batch_size,steps_to_target\n8,"4" 5\n', "is not valid CSV at line 2: "),
        ('batch_size,steps_to_target\n8,"4\n', "is not valid CSV at line 2: unexpected end of data."),
    ],
)
def test_what_is_no_table_is_refused(load: Load, text: str | bytes, words: str) -> None:
    assert words in refusal(load, text)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^There is no file .*none\.csv\. Name a CSV file that exists\.$"):
        load_curve_file(tmp_path / "none.csv", {}, {})
    with pytest.raises(SpecError, match=r"cannot be read: Is a directory\."):
        load_curve_file(tmp_path, {}, {})
