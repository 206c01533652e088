"""The slow stage of an input pipeline is found and named, and what helps is tried on the training step."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor.training import data
from advisor.training.data import ArraySplit, DatasetSplit
from advisor.training.feeds import training_feed
from advisor.training.loop import StepLoop
from advisor.training.parts import seconds_per_step
from advisor.training.pipeline import diagnose
from advisor.training.stages import time_stages

Data = tf.data.Dataset
BATCH_SIZE, SECONDS, SLEEP_S = 8, 0.15, 0.008


def sleeps(x):
    time.sleep(SLEEP_S)
    return x


def slow(x):
    return tf.ensure_shape(tf.py_function(sleeps, [x], tf.int64), x.shape)


def pair(x):
    return tf.cast(x, tf.float32)[None], tf.cast(x, tf.float32)


def third(x):
    return x % 3 == 0


def slow_numbers():
    for number in range(60):
        time.sleep(SLEEP_S)
        yield number


def slow_part(x):
    return Data.range(10).map(slow).map(lambda y: x + y)


def running_total(state, x):
    return state + x, state + x


def time_step(split):
    """Return the time of a step that only adds up a batch."""
    loop = StepLoop(
        lambda batch: tf.reduce_mean(keras.tree.flatten(batch)[-1]),
        training_feed(split, BATCH_SIZE),
        tf.distribute.get_strategy(),
    )
    return seconds_per_step(loop, SECONDS)


def diagnosis(dataset, input_workers=0, unused=(), step=time_step):
    split = DatasetSplit("train", dataset)
    return diagnose(split, BATCH_SIZE, SECONDS, input_workers, unused, step)


def share(found, name):
    """Return the part of the pipeline's time that the stages take whose names begin with ``name``."""
    taken = sum(stage.time_per_example_s for stage in found.stages if stage.name.startswith(name))
    return taken / sum(stage.time_per_example_s for stage in found.stages)


def by_name(found):
    return {remedy.name: remedy for remedy in found.remedies}


def names(found):
    return [stage.name.split(" (")[0] for stage in found.stages]


@pytest.fixture(scope="module")
def slow_map():
    dataset = Data.range(600).shuffle(600).map(slow).map(pair).prefetch(1)
    return diagnosis(dataset, input_workers=2)


def test_a_slow_map_is_found_and_named(slow_map):
    assert names(slow_map) == ["range", "shuffle", "map slow", "map pair", "prefetch", "shuffle and batch"]
    assert share(slow_map, "map slow (test_pipeline.py:") > 0.7


def test_a_parallel_map_helps_a_slow_one(slow_map):
    remedy = by_name(slow_map)["parallel map"]
    assert remedy.how.startswith("Give the map slow (test_pipeline.py:")
    assert remedy.how.endswith(") num_parallel_calls=tf.data.AUTOTUNE.")
    assert remedy.speedup > 1.3
    assert remedy.input_before_s / remedy.input_after_s > 1.3


def test_a_cache_helps_a_slow_map_most(slow_map):
    assert by_name(slow_map)["cache"].speedup > 5
    assert slow_map.remedies[0].name == "cache"
    assert "random augmentation" in slow_map.remedies[0].caveat


def test_more_producers_help_a_slow_map(slow_map):
    remedy = by_name(slow_map)["2 producers"]
    assert remedy.speedup > 1.3
    assert "ShardingPolicy.DYNAMIC" in remedy.how


def test_remedies_come_in_the_order_of_what_they_give(slow_map):
    times = [remedy.step_after_s for remedy in slow_map.remedies]
    assert len(times) == 3
    assert times == sorted(times)


def test_a_batch_takes_as_long_as_its_examples(slow_map):
    per_batch = BATCH_SIZE * sum(stage.time_per_example_s for stage in slow_map.stages)
    assert 1 / 4 < slow_map.remedies[0].input_before_s / per_batch < 4


@pytest.fixture(scope="module")
def slow_generator():
    signature = tf.TensorSpec([], tf.int64)
    dataset = Data.from_generator(slow_numbers, output_signature=signature).filter(third).map(pair)
    return diagnosis(dataset, input_workers=2)


def test_a_slow_generator_is_one_stage(slow_generator):
    assert names(slow_generator) == [
        "generator slow_numbers",
        "filter third",
        "map pair",
        "shuffle and batch",
    ]
    assert share(slow_generator, "generator slow_numbers (test_pipeline.py:") > 0.6


def test_what_a_filter_throws_away_counts_for_the_example_it_leaves(slow_generator):
    (generator, *_), remedy = slow_generator.stages, slow_generator.remedies[0]
    assert BATCH_SIZE * generator.time_per_example_s > 0.5 * remedy.input_before_s


def test_a_generator_is_cached_and_its_author_told_what_to_do(slow_generator):
    assert list(by_name(slow_generator)) == ["cache"]
    undivided, advice = slow_generator.notes
    assert undivided.startswith(
        "2 producers could not be tried: a tf.data service cannot divide the elements of"
    )
    assert "of generator slow_numbers (test_pipeline.py:" in undivided
    assert "of generator slow_numbers (test_pipeline.py:" in undivided
    assert advice.startswith("Generator slow_numbers (test_pipeline.py:")
    assert "as a map over a dataset of indices" in advice


def test_a_cheap_pipeline_has_no_cache_to_gain():
    arrays = (np.ones((50, 3), "float32"), np.ones(50, "float32"))
    found = diagnosis(Data.from_tensor_slices(arrays))
    assert names(found) == ["arrays", "shuffle and batch"]
    assert found.remedies == found.notes == ()


def with_blob(x):
    return {"blob": tf.zeros([2_000_000]) + tf.cast(x, tf.float32), "small": pair(x)[0]}, pair(x)[1]


def test_an_unused_feature_is_dropped_before_it_is_batched():
    dataset = Data.range(10).map(with_blob).cache().prefetch(1)
    found = diagnosis(dataset, unused=["x['blob']"])
    assert found.unused_features == ("x['blob']",)
    assert found.unused_share > 0.99
    remedy = by_name(found)["drop unused features"]
    assert remedy.how == "Leave x['blob'] out of the examples."
    assert remedy.input_after_s < remedy.input_before_s / 2


def test_a_step_that_needs_its_unused_feature_gives_a_note():
    def picky(split):
        if split.dataset.element_spec[0]["blob"].shape == [0]:
            raise ValueError("blob must have 2,000,000 numbers")
        return time_step(split)

    found = diagnosis(Data.range(10).map(with_blob), unused=["x['blob']"], step=picky)
    assert "drop unused features" not in by_name(found)
    assert (
        "Drop unused features could not be measured. ValueError: blob must have 2,000,000 numbers"
        in found.notes
    )


def test_a_stage_that_cannot_be_built_again_gives_a_note():
    later = Data.range(200).map(slow).scan(tf.constant(0, tf.int64), running_total).map(pair)
    found = diagnosis(later)
    assert share(found, "map slow") > 0.6
    assert "parallel map" not in by_name(found)
    (note,) = found.notes
    assert note.startswith("Parallel map could not be tried: scan running_total (test_pipeline.py:")
    assert note.endswith("), a later stage, cannot be built again.")


def test_a_slow_interleave_reads_in_parallel():
    found = diagnosis(Data.range(4).interleave(slow_part, cycle_length=4).map(pair))
    assert share(found, "interleave slow_part") > 0.6
    remedy = by_name(found)["parallel reads"]
    assert remedy.how.startswith("Give the interleave slow_part (test_pipeline.py:")
    assert remedy.speedup > 1.3


def test_elements_of_stages_are_counted_in_examples():
    batches = Data.range(60).map(slow).batch(6).map(slow).unbatch().map(pair)
    found = diagnosis(batches)
    assert names(found)[1:5] == ["map slow", "batch", "map slow", "unbatch"]
    each, whole = (stage.time_per_example_s for stage in found.stages if stage.name.startswith("map slow"))
    assert each > 2 * whole


def test_a_full_cache_hides_what_is_before_it():
    found = diagnosis(Data.range(12).map(slow).cache().skip(3).map(pair))
    assert names(found) == ["cache", "skip", "map pair", "shuffle and batch"]
    assert found.notes == ("The stages before the cache run in the first epoch alone; they are left out.",)


def test_a_cache_that_takes_long_to_fill_is_timed_as_in_the_first_epoch():
    timed = time_stages(Data.range(100_000).map(slow).cache(), SECONDS)
    assert [stage.name.split(" (")[0] for stage in timed.stages] == ["range", "map slow", "cache"]
    assert timed.notes == (
        "The cache was not full when it was timed: the times are those of the first epoch.",
    )


def test_a_large_shuffle_buffer_is_not_waited_for():
    timed = time_stages(Data.range(100_000).map(slow).shuffle(100_000), SECONDS)
    buffers = [int(stage.dataset._buffer_size) for stage in timed.stages if stage.name == "shuffle"]
    assert 1 <= buffers[0] < 100


def test_paired_datasets_are_not_given_to_producers():
    paired = Data.zip((Data.range(200).map(slow).map(lambda x: pair(x)[0]), Data.range(200).map(tf.identity)))
    found = diagnosis(paired.map(lambda x, y: (x, tf.cast(y, tf.float32))), input_workers=2)
    assert names(found)[:6] == ["range", "map slow", "map lambda", "range", "map identity", "zip"]
    assert share(found, "map slow") > 0.6
    assert found.notes == (
        "2 producers could not be tried: a tf.data service cannot divide the elements of zip.",
    )
    assert by_name(found)["parallel map"].speedup > 1.3


def test_examples_that_are_dicts_have_no_stage_of_ours():
    assert names(diagnosis(Data.range(50).map(lambda x: {"x": tf.cast(x, tf.float32)}))) == [
        "range",
        "map lambda",
        "shuffle and batch",
    ]


def test_a_fault_of_the_pipeline_under_a_remedy_is_a_note():
    asked = []

    def step(split):
        asked.append(split.name)
        if len(asked) > 1:
            raise RuntimeError("the device has gone")
        return 1.0

    found = diagnosis(Data.range(200).map(slow).map(pair), input_workers=1, step=step)
    assert found.remedies == ()
    assert [note.split(".")[0] for note in found.notes] == [
        "Parallel map could not be measured",
        "Cache could not be measured",
        "1 producer could not be measured",
    ]
    assert all(note.endswith("RuntimeError: the device has gone") for note in found.notes)


@pytest.fixture
def large_arrays(monkeypatch):
    monkeypatch.setattr(data, "RESIDENT_BYTES", 1000)
    x = {
        "blob": np.ones((10, 2_000_000), "float32"),
        "name": np.array(["a", "b"] * 5),
        "small": np.ones((10, 9)),
    }
    return ArraySplit("train", (x, np.ones(10, "float32")))


def test_large_arrays_are_gathered_without_what_nobody_reads(large_arrays):
    found = diagnose(large_arrays, BATCH_SIZE, SECONDS, 2, ["x['blob']", "x['name']"], time_step)
    assert names(found) == ["gather"]
    assert found.unused_share > 0.99
    remedy = by_name(found)["drop unused features"]
    assert remedy.how == "Leave x['blob'] and x['name'] out of the examples."
    assert remedy.input_after_s < remedy.input_before_s


def test_arrays_on_the_device_have_no_pipeline():
    split = ArraySplit("train", ({"a": np.ones((40, 3)), "b": np.ones((40, 1))}, np.ones(40)))
    found = diagnose(split, BATCH_SIZE, SECONDS, 2, ["x['b']"], time_step)
    assert found.stages == found.remedies == ()
    assert (found.batch_size, found.unused_features, found.unused_share) == (BATCH_SIZE, ("x['b']",), 0.2)
