"""The stages of a ``tf.data`` pipeline have names that a user knows, and can be built again."""

import re
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from advisor.training.data import DatasetSplit
from advisor.training.transformations import (
    UnknownStageError,
    copied,
    in_parallel,
    inputs_of,
    is_hidden,
    kind,
    name_of,
    parts_of,
)

Data = tf.data.Dataset


def double(x):
    return 2 * x


def add(amount, x):
    return x + amount


def odd(x):
    return x % 2 == 1


def below_ninety(x):
    return x < 90


def twice(x):
    return Data.from_tensors(x).repeat(2)


def total(state, x):
    return state + x, state + x


def numbers():
    yield from range(5)


@tf.function
def compiled(x):
    return x + 1


class Adds:
    def __call__(self, x):
        return x + 1


def place(name):
    return rf"{name} \(test_transformations\.py:\d+\)"


RANGE = Data.range(8)
NAMES = {
    r"range": RANGE,
    rf"map {place('double')}": RANGE.map(double),
    rf"map {place('lambda')}": RANGE.map(lambda x: x),
    rf"map {place('add')}": RANGE.map(partial(add, 3)),
    rf"map {place('compiled')}": RANGE.map(compiled),
    rf"map {place('Adds')}": RANGE.map(Adds()),
    r"map as_string": RANGE.map(tf.strings.as_string),
    rf"parallel map {place('double')}": RANGE.map(double, num_parallel_calls=2),
    rf"filter {place('odd')}": RANGE.filter(odd),
    rf"interleave {place('twice')}": RANGE.interleave(twice),
    rf"flat map {place('twice')}": RANGE.flat_map(twice),
    rf"generator {place('numbers')}": Data.from_generator(
        numbers, output_signature=tf.TensorSpec([], tf.int64)
    ),
    r"interleave TextLineDataset": Data.from_tensor_slices(["a"]).interleave(tf.data.TextLineDataset),
    r"TFRecord files": tf.data.TFRecordDataset(["a", "b"]),
    r"TextLine files": tf.data.TextLineDataset("a"),
    r"arrays": Data.from_tensor_slices(np.arange(3)),
    r"shuffle": RANGE.shuffle(3),
    r"batch": RANGE.batch(3),
    r"padded batch": RANGE.padded_batch(3),
    r"cache": RANGE.cache(),
    r"enumerate": RANGE.enumerate(),
    r"zip": Data.zip((RANGE, RANGE)),
    rf"take while {place('odd')}": RANGE.take_while(odd),
    r"sample from datasets": Data.sample_from_datasets([RANGE, RANGE]),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_stage_is_called_what_the_user_wrote(name):
    assert re.fullmatch(name, name_of(NAMES[name]))


def test_a_generator_and_files_are_sources():
    files = tf.data.TFRecordDataset(["a", "b"])
    generator = Data.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))
    assert inputs_of(files) == inputs_of(generator) == []


def test_what_no_user_wrote_is_hidden():
    assert is_hidden(DatasetSplit("train", RANGE).dataset)
    stages = list(parts_of(RANGE.batch(2).unbatch().with_options(tf.data.Options())))
    assert [name_of(part) for part in stages if not is_hidden(part)] == ["unbatch", "batch", "range"]


def chain():
    """Return a pipeline with every kind of stage that can be built again."""
    made = (
        Data.range(100).map(double).map(double, num_parallel_calls=2, deterministic=True).enumerate(start=7)
    )
    made = made.map(lambda index, x: x + index).shuffle(10, 3, False).take(80).skip(3).repeat(2).cache()
    made = made.batch(7, drop_remainder=True).map(tf.identity).unbatch().filter(odd).interleave(twice, 3, 2)
    made = made.flat_map(twice).take_while(lambda x: x < 10_000).shard(2, 1).concatenate(Data.range(9))
    made = made.batch(4, num_parallel_calls=2).unbatch().padded_batch(5).prefetch(2).unbatch()
    options = tf.data.Options()
    options.deterministic = True
    zipped = Data.zip({"a": made, "b": (made, Data.range(1_000))}).with_options(options)
    return zipped.apply(tf.data.experimental.assert_cardinality(sum(1 for _ in zipped)))


def on_new_inputs(dataset):
    """Return ``dataset`` built again from its sources on; each source is replaced by one that is like it."""
    inputs = inputs_of(dataset)
    if not inputs:
        return dataset.with_options(tf.data.Options())
    return copied(dataset, [on_new_inputs(source) for source in inputs])


def test_a_pipeline_that_is_built_again_gives_the_same_elements():
    original = chain()
    again = on_new_inputs(original)
    assert again.element_spec == original.element_spec
    first, second = (list(dataset.as_numpy_iterator()) for dataset in (original, again))
    assert first == second
    assert len(first) > 100
    kinds = {kind(part) for part in parts_of(again)}
    assert {kind(part) for part in parts_of(original)} <= kinds


def test_building_again_keeps_arguments():
    made = Data.range(9).map(double, num_parallel_calls=3, deterministic=False).batch(2, drop_remainder=True)
    again = on_new_inputs(made)
    (mapped,) = inputs_of(again)
    assert (int(mapped._num_parallel_calls), mapped._deterministic) == (3, "false")
    assert again.element_spec.shape == [2]


@pytest.mark.parametrize("stage", ["scan", "unique", "cache"])
def test_a_stage_whose_arguments_are_not_known_is_not_guessed(stage, tmp_path):
    later = {
        "scan": lambda dataset: dataset.scan(tf.constant(0, tf.int64), total),
        "unique": lambda dataset: dataset.unique(),
        "cache": lambda dataset: dataset.cache(str(tmp_path / "cached")),
    }[stage]
    with pytest.raises(UnknownStageError, match=stage):
        copied(later(RANGE), [RANGE])


def test_a_stage_in_parallel_gives_the_same_elements():
    files = Data.from_tensor_slices([3, 5, 8])
    slow = files.interleave(lambda count: Data.range(tf.cast(count, tf.int64)), cycle_length=2).map(double)
    made = slow.filter(below_ninety).batch(2)
    stages = [slow, inputs_of(slow)[0]]
    changed = in_parallel(made, stages)
    assert [kind(part) for part in parts_of(changed)][2:4] == [
        "_ParallelMapDataset",
        "_ParallelInterleaveDataset",
    ]
    pairs = zip(made.as_numpy_iterator(), changed.as_numpy_iterator(), strict=True)
    assert all((one == other).all() for one, other in pairs)


def test_record_files_in_parallel_give_the_same_records(tmp_path):
    names = [str(tmp_path / name) for name in ("first", "second")]
    for name in names:
        with tf.io.TFRecordWriter(name, "GZIP") as writer:
            writer.write(name.encode())
    records = tf.data.TFRecordDataset(names, "GZIP")
    changed = in_parallel(records.prefetch(1), [records])
    assert sorted(changed.as_numpy_iterator()) == sorted(name.encode() for name in names)


def test_a_pipeline_without_the_stage_stays_as_it_is():
    made = RANGE.map(double)
    assert in_parallel(made, []) is made


@pytest.mark.parametrize("look", [name_of, is_hidden, partial(copied, inputs=[RANGE])])
def test_what_this_tensorflow_keeps_elsewhere_makes_a_stage_unknown(look, monkeypatch):
    made = RANGE.map(double)
    monkeypatch.delattr(made, "_map_func")
    with pytest.raises(UnknownStageError, match=r"^map$"):
        look(made)
