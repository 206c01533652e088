"""Parts of a step by themselves, and options of the loop: what they time, and what they leave alone."""

import time
import weakref
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor import Workload
from advisor.errors import OutOfMemoryError, SessionError
from advisor.records.requests import SessionOptions
from advisor.records.session import StepPart
from advisor.training import parts
from advisor.training.data import ArraySplit, DatasetSplit
from tests.training.zoo import BY_NAME

LENGTHS = (3, 9, 5, 4)
SLEEP_S = 0.004


def ragged_examples():
    for index, length in enumerate(LENGTHS * 8):
        yield np.full((length, 2), 1.0 + index, "float32"), np.array([length % 2], "float32")


def ragged_data():
    signature = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((1,), tf.float32))
    dataset = tf.data.Dataset.from_generator(ragged_examples, output_signature=signature)
    return {"train": dataset, "validation": dataset.take(7)}


def pooled(hp):
    pooling = keras.layers.GlobalMaxPooling1D()
    return keras.Sequential([keras.Input((None, 2)), pooling, keras.layers.Dense(1)])


RAGGED = Workload("ragged", pooled, ragged_data, "mse", optimizer="sgd")


class Calling(keras.Model):
    """Its steps call a Python function that takes a while."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        def slow(value):
            time.sleep(SLEEP_S)
            return value

        output = self.dense(x)
        return output + 0.0 * tf.ensure_shape(tf.numpy_function(slow, [tf.zeros(())], tf.float32), ())


@tf.custom_gradient
def greedy_backwards(x):
    def gradient(upstream):
        def allocate(value):
            if len(value) > 8:
                raise MemoryError("no room for the gradients")
            return value

        return tf.ensure_shape(tf.numpy_function(allocate, [upstream], tf.float32), upstream.shape)

    return tf.identity(x), gradient


class Greedy(keras.Model):
    """Finds no memory for a batch above 8, and that only in the backward pass."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return greedy_backwards(self.dense(x))


def losses(session, steps=4):
    session.reset(8, {}, 3)
    return [session.train(1).training_loss for _ in range(steps)]


@pytest.mark.parametrize("name", ["normalized", "weighted", "tagger", "own-steps", "lazy"])
def test_a_probe_changes_nothing_of_later_training(name, open_workload):
    session = open_workload(BY_NAME[name])
    before = losses(session)
    state = session.evaluate("validation").metrics
    session.reset(8, {}, 0)
    for part in StepPart:
        assert session.train_part(part, 3).steps == 3
    session.diagnose(0.0, 0)
    assert losses(session) == before
    assert session.evaluate("validation").metrics == state


def test_a_probe_leaves_the_file_of_a_checkpoint_as_it_would_have_been(open_workload, tmp_path):
    paths = [tmp_path / "plain", tmp_path / "probed"]
    for path, probes in zip(paths, (False, True), strict=True):
        session = open_workload(BY_NAME["normalized"])
        if probes:
            session.reset(8, {}, 1)
            session.train_part(StepPart.COMPUTE, 5)
        losses(session)
        session.save(path)
    plain, probed = (np.load(path, allow_pickle=True) for path in paths)
    assert sorted(plain) == sorted(probed)
    for name in plain:
        np.testing.assert_array_equal(plain[name], probed[name])


def test_the_pipeline_alone_trains_nothing(open_workload):
    session = open_workload(BY_NAME["weighted"])
    session.reset(8, {}, 3)
    before = session.evaluate("validation").metrics
    timing = session.train_part(StepPart.INPUT, 20)
    assert np.isnan(timing.training_loss)
    assert timing.host_seconds == 0
    assert session.evaluate("validation").metrics == before
    session.train_part(StepPart.COMPUTE, 20)
    assert session.evaluate("validation").metrics != before


def test_time_in_python_functions_is_counted_where_there_are_some(open_workload):
    calling = replace(BY_NAME["lazy"], name="calling", build_model=lambda hp: Calling())
    session = open_workload(calling)
    session.reset(8, {}, 0)
    session.train_part(StepPart.COMPUTE, 2)
    timing = session.train_part(StepPart.COMPUTE, 5)
    assert 5 * SLEEP_S <= timing.host_seconds <= timing.seconds
    plain = open_workload(BY_NAME["lazy"])
    plain.reset(8, {}, 0)
    assert plain.train_part(StepPart.COMPUTE, 5).host_seconds == 0


def test_examples_of_different_length_train_and_the_longest_is_found(open_workload):
    session = open_workload(RAGGED)
    session.reset(4, {}, 0)
    assert np.isfinite(session.train(5).training_loss)
    assert session.evaluate("validation").examples == 7
    assert np.isfinite(session.train_part(StepPart.LONGEST, 2).training_loss)


def cached_batches(monkeypatch):
    """Return a list that the batches of parts are added to, as they are made."""
    seen = []
    original = parts.CachedFeed
    monkeypatch.setattr(parts, "CachedFeed", lambda batch: seen.append(batch) or original(batch))
    return seen


def of_lengths(lengths):
    """Return a dataset of examples of these lengths, with how often it was read to its end."""
    reads = []

    def examples():
        for length in lengths:
            yield np.ones((length, 2), "float32"), np.ones(1, "float32")
        reads.append(1)

    signature = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((1,), tf.float32))
    dataset = tf.data.Dataset.from_generator(examples, output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(len(lengths))), reads


def test_computation_alone_is_timed_on_a_batch_of_typical_length(open_workload, monkeypatch):
    """The median of the longest of two lengths from 1 to 99 is 70, and the spread of a median of 8 is 8."""

    def load():
        dataset, _ = of_lengths(range(1, 100))
        return {"train": dataset, "validation": dataset.take(3)}

    seen = cached_batches(monkeypatch)
    session = open_workload(replace(RAGGED, name="sorted", data=load))
    session.reset(2, {}, 0)
    session.train_part(StepPart.COMPUTE, 2)
    ((x, y),) = seen
    assert x.shape[0] == 2 and x.shape[2] == 2 and y.shape == (2, 1)
    assert 40 <= x.shape[1] < 99


def test_computation_alone_is_timed_on_shuffled_arrays():
    split = ArraySplit("train", (np.arange(100, dtype="float32"), np.arange(100, dtype="float32")))
    x, y = parts.typical_batch(split, 10)
    assert x.tolist() == y.tolist() != list(range(10))
    assert len(set(x.tolist())) == 10


def test_few_large_batches_are_drawn_in_search_of_a_typical_one(monkeypatch):
    dataset, _ = of_lengths([1] * 40)
    split, taken = DatasetSplit("train", dataset), []
    stream = split.stream
    monkeypatch.setattr(split, "stream", lambda *where: stream(*where).map(counting(taken)))
    assert parts.typical_batch(split, 4)[0].shape == (4, 1, 2)
    assert len(taken) >= 8
    taken.clear()
    monkeypatch.setattr(parts, "_DRAWN_BYTES", 0)
    parts.typical_batch(split, 4)
    assert len(taken) < 8


def counting(taken):
    """Return a function of a batch that notes each one made."""

    def note(x, y):
        return tf.ensure_shape(tf.numpy_function(lambda x: taken.append(1) or x, [x], tf.float32), x.shape), y

    return note


def test_the_largest_example_is_looked_for_once():
    dataset, reads = of_lengths(LENGTHS)
    split = DatasetSplit("train", dataset)
    assert [split.largest(count, None)[0].shape for count in (1, 2, 3)] == [(n, 9, 2) for n in (1, 2, 3)]
    assert len(reads) == 1
    assert split.largest(2, lambda x, y: -len(x))[0].shape == (2, 3, 2)


def test_a_part_is_gone_when_training_starts_again(open_workload, monkeypatch):
    session = open_workload(RAGGED)
    session.reset(4, {}, 0)
    seen = cached_batches(monkeypatch)
    session.train_part(StepPart.LONGEST, 1)
    feed = weakref.ref(session._active._parts._loops[StepPart.LONGEST].feed)
    assert feed() is not None
    session.reset(4, {}, 0)
    assert feed() is None
    session.train_part(StepPart.LONGEST, 1)
    assert len(seen) == 2


@pytest.mark.parametrize(("size", "expected"), [(None, (9, 2)), (lambda x, y: -len(x), (3, 2))])
def test_the_longest_batch_repeats_the_largest_example(size, expected, open_workload, monkeypatch):
    seen = cached_batches(monkeypatch)
    session = open_workload(replace(RAGGED, example_size=size))
    session.reset(4, {}, 0)
    session.train_part(StepPart.LONGEST, 1)
    ((x, y),) = seen
    assert x.shape == (4, *expected)
    assert y.shape == (4, 1)
    assert (x == x[:1]).all()


def test_the_largest_of_arrays_needs_a_measure(open_workload):
    workload = replace(BY_NAME["weighted"], example_size=lambda x, y, weight: weight)
    session = open_workload(workload)
    session.reset(4, {}, 0)
    _, _, weights = session._active._splits["train"].largest(3, workload.example_size)
    assert weights.tolist() == [session._active._splits["train"].arrays[2].max()] * 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("classes", SessionOptions(xla=True)),
        ("weighted", SessionOptions(xla=True)),
        ("classes", SessionOptions(steps_per_call=3)),
        ("normalized", SessionOptions(steps_per_call=3)),  # whose dropout draws otherwise under XLA
    ],
    ids=str,
)
def test_options_change_the_time_and_not_the_training(name, options, open_workload):
    plain, changed = open_workload(BY_NAME[name]), open_workload(BY_NAME[name], options=options)
    expected, found = [], []
    for session, curve in ((plain, expected), (changed, found)):
        session.reset(8, {}, 3)
        curve += [session.train(7).training_loss, session.train(4).training_loss]
    assert found == pytest.approx(expected, rel=1e-4)
    was, now = plain.describe(), changed.describe()
    assert was.fingerprint.training == now.fingerprint.training
    assert was.fingerprint.timing != now.fingerprint.timing
    assert now.configuration == replace(
        was.configuration, xla=options.xla, steps_per_call=options.steps_per_call
    )


def test_memory_that_runs_out_in_the_backward_pass_alone_is_noticed(open_workload):
    session = open_workload(replace(BY_NAME["lazy"], name="greedy", build_model=lambda hp: Greedy()))
    session.reset(16, {}, 0)
    assert np.isfinite(session.evaluate("validation").metrics["loss"])
    with pytest.raises(OutOfMemoryError, match="no room for the gradients"):
        session.train(1)
    session.reset(8, {}, 0)
    assert np.isfinite(session.train(2).training_loss)


def test_no_steps_of_a_part_are_refused(open_workload):
    session = open_workload(BY_NAME["weighted"])
    with pytest.raises(SessionError, match="call reset first"):
        session.train_part(StepPart.COMPUTE, 1)
    session.reset(8, {}, 0)
    with pytest.raises(SessionError, match="0 steps were asked for"):
        session.train_part(StepPart.INPUT, 0)
