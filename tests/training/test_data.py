"""Batches: every example once an epoch, in an order that is a function of seed and epoch alone."""

from itertools import chain

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import Workload
from advisor.errors import WorkloadError
from advisor.training import data
from advisor.training.data import ArraySplit, DatasetSplit, epoch_order
from advisor.training.feeds import ResidentFeed, StreamFeed, training_feed
from advisor.training.loop import StepLoop

EXAMPLES, BATCH_SIZE = 23, 5  # four batches an epoch, three examples left out
NUMBERS = np.arange(EXAMPLES, dtype="float32")


def seen(feed, seed, steps, start=0, blocks=None):
    """Return the examples of each step, as the step loop meets them."""
    batches = []
    take = tf.py_function
    loop = StepLoop(
        lambda batch: take(_noting(batches), [batch[0]], tf.float32), feed, tf.distribute.get_strategy()
    )
    loop.start(seed, start)
    for block in blocks or [steps]:
        loop.run(block)
    assert loop.step == start + steps
    return [list(batch) for batch in batches]


def _noting(batches):
    def note(batch):
        batches.append(batch.numpy().tolist())
        return tf.reduce_mean(batch)

    return note


@pytest.fixture
def arrays():
    return ArraySplit("train", (NUMBERS, NUMBERS))


FEEDS = pytest.mark.parametrize("kind", [ResidentFeed, StreamFeed])


@settings(deadline=None, derandomize=True, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), epoch=st.integers(0, 2**40), examples=st.integers(1, 50))
def test_an_epoch_is_a_permutation(seed, epoch, examples):
    order = epoch_order(seed, epoch, examples).numpy()
    assert sorted(order) == list(range(examples))
    assert (epoch_order(seed, epoch, examples).numpy() == order).all()


def test_seeds_and_epochs_have_orders_of_their_own():
    orders = {tuple(epoch_order(seed, epoch, 50).numpy()) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_every_place_of_an_epoch_is_as_likely_for_every_example():
    first = [int(epoch_order(0, epoch, 4)[0]) for epoch in range(400)]
    counts = np.bincount(first, minlength=4)
    assert counts.min() > 60  # 100 expected, with a standard deviation of 9


@FEEDS
def test_an_epoch_has_no_example_twice(arrays, kind):
    batches = seen(kind(arrays, BATCH_SIZE), seed=1, steps=8)
    for epoch in (batches[:4], batches[4:]):
        examples = list(chain(*epoch))
        assert len(set(examples)) == len(examples) == 20
    assert batches[:4] != batches[4:]


def test_large_arrays_come_in_the_order_of_small_ones(arrays):
    resident, streamed = (
        seen(kind(arrays, BATCH_SIZE), seed=3, steps=11) for kind in (ResidentFeed, StreamFeed)
    )
    assert resident == streamed


@FEEDS
def test_a_feed_goes_on_anywhere(arrays, kind):
    whole = seen(kind(arrays, BATCH_SIZE), seed=4, steps=10)
    assert seen(kind(arrays, BATCH_SIZE), seed=4, steps=4, start=6) == whole[6:]
    assert seen(kind(arrays, BATCH_SIZE), seed=4, steps=10, blocks=[1, 6, 3]) == whole


def test_large_arrays_stay_in_the_hosts_memory(monkeypatch):
    monkeypatch.setattr(data, "RESIDENT_BYTES", 100)
    assert isinstance(training_feed(ArraySplit("train", (NUMBERS, NUMBERS)), 2), StreamFeed)
    monkeypatch.setattr(data, "RESIDENT_BYTES", 200)
    assert isinstance(training_feed(ArraySplit("train", (NUMBERS, NUMBERS)), 2), ResidentFeed)


def test_a_dataset_is_shuffled_by_the_seed_and_repeated():
    split = DatasetSplit("train", tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS)))
    batches = seen(StreamFeed(split, BATCH_SIZE), seed=1, steps=2 * EXAMPLES)
    examples = list(chain(*batches))
    epochs = [examples[start : start + EXAMPLES] for start in range(0, len(examples), EXAMPLES)]
    assert all(sorted(epoch) == sorted(NUMBERS) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert seen(StreamFeed(split, BATCH_SIZE), seed=1, steps=9) == batches[:9]
    assert seen(StreamFeed(split, BATCH_SIZE), seed=1, steps=4, start=5) == batches[5:9]
    assert seen(StreamFeed(split, BATCH_SIZE), seed=2, steps=9) != batches[:9]


def test_a_dataset_that_does_not_know_its_length_is_counted():
    endless_looking = tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS)).filter(lambda x, y: x < 7)
    assert DatasetSplit("train", endless_looking).examples == 7


def test_batches_for_evaluation_keep_the_order_and_the_rest(arrays):
    dataset = DatasetSplit("train", tf.data.Dataset.from_tensor_slices((NUMBERS, NUMBERS)))
    for split in (arrays, dataset):
        batches = [batch[0].numpy().tolist() for batch in split.batches(10)]
        assert [len(batch) for batch in batches] == [10, 10, 3]
        assert list(chain(*batches)) == NUMBERS.tolist()


# Examples of different length


def sequences(labels, weights=None, known=False):
    """Return a dataset of sequences of 1, 2 and 3 ones, with labels and weights of a length of their own."""
    parts = [(1, 2, 3), *(part for part in (labels, weights) if part)]
    signature = tuple(tf.TensorSpec((None,), tf.float32) for _ in parts)

    def examples():
        for lengths in zip(*parts, strict=True):
            yield tuple(np.ones(length, "float32") for length in lengths)

    dataset = tf.data.Dataset.from_generator(examples, output_signature=signature)
    if not known:
        return dataset
    return dataset.map(lambda x, y, *rest: (x, tf.ensure_shape(y, (labels[0],)), *rest))


@pytest.mark.parametrize(
    "dataset",
    [sequences((2, 2, 2)), sequences((2, 2, 2), known=True), sequences((2, 2, 2), (1, 1, 1))],
    ids=["alike", "known", "weighted"],
)
def test_examples_are_padded_and_labels_alike_are_left_as_they_are(dataset):
    batch = next(iter(data.batched(dataset, 3)))
    assert batch[0].numpy().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert batch[1].numpy().tolist() == [[1, 1]] * 3
    assert DatasetSplit("train", dataset).head(3)[1].tolist() == [[1, 1]] * 3


def test_labels_are_padded_where_weights_switch_the_padding_off():
    batch = next(iter(data.batched(sequences((1, 2, 3), (1, 2, 3)), 3)))
    for part in batch:
        assert part.numpy().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


NUMBERED = tf.data.Dataset.from_tensor_slices(NUMBERS)


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (
            tf.data.Dataset.from_tensor_slices((tf.ragged.constant([[[1.0], [2.0, 3.0]]]), [1.0])),
            "x of the train dataset is described by a RaggedTensorSpec. Give dense tensors, of",
        ),
        (
            tf.data.Dataset.from_tensor_slices(({"words": tf.sparse.eye(3)}, [1.0, 2.0, 3.0])),
            "x['words'] of the train dataset is described by a SparseTensorSpec",
        ),
        (NUMBERED.window(2).map(lambda x: (x, x)), "described by a DatasetSpec"),
        (
            NUMBERED.map(lambda x: (x, x, None)),
            "sample_weight of the train dataset is described by a NoneTensor",
        ),
    ],
)
def test_what_is_no_dense_tensor_is_refused_in_words(dataset, words):
    with pytest.raises(WorkloadError) as raised:
        DatasetSplit("train", dataset)
    assert words in str(raised.value)


@pytest.mark.parametrize("weights", [None, (1, 1, 1)])
def test_other_labels_that_differ_in_length_are_refused_in_words(weights, open_workload):
    def load():
        dataset = sequences((1, 2, 3), weights)
        if weights:
            dataset = dataset.map(lambda x, y, weight: (x, y, weight[0]))
        return {"train": dataset, "validation": dataset}

    workload = Workload("ragged", linear, load, "mse")
    with pytest.raises(WorkloadError, match=r"labels \(y\) of one batch differ .*sample_weight") as raised:
        open_workload(workload).describe()
    assert "node" not in str(raised.value) and "iterator" not in str(raised.value)


def test_each_output_has_weights_of_its_own():
    tensors = {"a": tf.TensorSpec((None,)), "b": tf.TensorSpec((None,))}
    some = {"a": tf.TensorSpec((None,)), "b": tf.TensorSpec(())}
    assert data._weights_spare_labels((tf.TensorSpec((None,)), tensors, tensors))
    assert data._weights_spare_labels((tf.TensorSpec((None,)), some, some))
    assert not data._weights_spare_labels((tf.TensorSpec((None,)), tensors, some))
    assert data._weights_spare_labels((tf.TensorSpec((None,)),))


def test_examples_without_labels_are_padded():
    dataset = DatasetSplit("train", sequences(None))
    assert dataset.head(2)[0].tolist() == [[1, 0], [1, 1]]


# The three forms of data train alike


def linear(hp):
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])


def _rows():
    noise = np.random.default_rng(0)
    x = noise.normal(size=(40, 3)).astype("float64")  # Keras computes in float32, and so does the session
    return x, x.sum(axis=1, keepdims=True)


def _dataset(_context=None):
    return tf.data.Dataset.from_tensor_slices(tuple(part.astype("float32") for part in _rows()))


FORMS = {
    "arrays": lambda: {"train": _rows(), "validation": _rows()},
    "dataset": lambda: {"train": _dataset(), "validation": _dataset()},
    "function": lambda: {"train": _dataset, "validation": _dataset},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_is_learned_from(form, open_workload):
    session = open_workload(Workload("linear", linear, FORMS[form], "mse", optimizer="sgd"))
    assert session.describe().examples == {"train": 40, "validation": 40}
    session.reset(16, {"learning_rate": 0.1}, 0)
    session.train(150)
    evaluation = session.evaluate("validation")
    assert evaluation.metrics["loss"] < 1e-3
    assert evaluation.examples == 40


def test_two_sessions_of_a_dataset_train_alike(open_workload):
    sessions = [open_workload(Workload("linear", linear, FORMS["dataset"], "mse")) for _ in range(2)]
    for session in sessions:
        session.reset(16, {}, 7)
        session.train(5)
    first, second = (session.evaluate("validation").metrics for session in sessions)
    assert first == second
