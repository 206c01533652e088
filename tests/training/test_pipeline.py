"""The slow stage of an input pipeline is found and named, and what helps is tried on the training step.

Where nothing else is said times are virtual: a slow element takes ``SLOW_S`` and any element a little,
however slow the machine is.
"""

import threading
import time
from contextlib import contextmanager, nullcontext

import keras
import numpy as np
import pytest
import tensorflow as tf

from advisor.errors import AdvisorError, SessionError
from advisor.records.session import MemoryUse
from advisor.training import data, devices, pipeline, producers, stopwatch
from advisor.training.data import ArraySplit, DatasetSplit
from advisor.training.feeds import training_feed
from advisor.training.loop import StepLoop
from advisor.training.parts import seconds_per_step
from advisor.training.pipeline import diagnose
from advisor.training.remedies import Bench, Change, lower_speedup
from advisor.training.stages import time_stages
from advisor.training.stopwatch import seconds_per_element

Data = tf.data.Dataset
BATCH_SIZE, SECONDS, SLOW_S, ELEMENT_S = 8, 1.0, 0.05, 1e-3


class Clock:
    """Virtual time, which passes where elements are made; counts the slow ones that are made at once."""

    def __init__(self):
        self._lock = threading.Lock()
        self.now, self.made, self.active, self.most = 0.0, 0, 0, 0

    def __call__(self):
        return self.now

    @contextmanager
    def passing(self, seconds):
        with self._lock:
            self.now, self.made, self.active = self.now + seconds, self.made + 1, self.active + 1
            self.most = max(self.most, self.active)
        yield
        with self._lock:
            self.active -= 1


CLOCK = Clock()


@pytest.fixture(scope="module", autouse=True)
def clock():
    """Let the stopwatch go by the virtual clock."""
    read = stopwatch.Reader.read

    def charged(reader, limit):
        count = read(reader, limit)
        with CLOCK.passing(ELEMENT_S * (count + 1)):
            return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopwatch.Reader, "read", charged)
        patch.setattr(stopwatch, "perf_counter", CLOCK)
        patch.setattr(pipeline, "_READING_S", 5 * ELEMENT_S)  # Reading one by one costs that much here.
        yield CLOCK


@pytest.fixture
def real_time(monkeypatch):
    monkeypatch.setattr(stopwatch, "perf_counter", time.perf_counter)


def takes_long(x):
    with CLOCK.passing(SLOW_S):
        time.sleep(0.002)  # Others may begin meanwhile.
    return x


def slow(x):
    return tf.ensure_shape(tf.py_function(takes_long, [x], tf.int64), x.shape)


def pair(x):
    return tf.cast(x, tf.float32)[None], tf.cast(x, tf.float32)


def third(x):
    return x % 3 == 0


def slow_numbers():
    for number in range(60):
        yield takes_long(number)


def slow_part(x):
    return Data.range(10).map(slow).map(lambda y: x + y)


def running_total(state, x):
    return state + x, state + x


def time_steps(split):
    """Time a step that does nothing but take a batch."""
    return lambda seconds: seconds_per_element(split.stream(BATCH_SIZE, 0, 0), seconds)


def time_real_steps(split):
    """Time a step that only adds up a batch, by the clock on the wall."""
    loop = StepLoop(
        lambda batch: tf.reduce_mean(keras.tree.flatten(batch)[-1]),
        training_feed(split, BATCH_SIZE),
        tf.distribute.get_strategy(),
    )
    return lambda seconds: seconds_per_step(loop, seconds)


class Watch:
    """Times steps, and keeps how many slow elements were made at once in each timing of each split."""

    def __init__(self):
        self.timings = []

    def __call__(self, split):
        timed, seen = time_steps(split), []
        self.timings.append(seen)

        def watched(seconds):
            CLOCK.most = 0
            result = timed(seconds)
            seen.append(CLOCK.most)
            return result

        return watched


def diagnosis(dataset, input_workers=0, unused=(), steps=time_steps, seconds=SECONDS):
    split = DatasetSplit("train", dataset)
    return diagnose(split, BATCH_SIZE, seconds, input_workers, unused, steps)


def share(found, name):
    """Return the part of the pipeline's time that the stages take whose names begin with ``name``."""
    taken = sum(stage.time_per_example_s for stage in found.stages if stage.name.startswith(name))
    return taken / sum(stage.time_per_example_s for stage in found.stages)


def by_name(found):
    return {remedy.name: remedy for remedy in found.remedies}


def names(found):
    return [stage.name.split(" (")[0] for stage in found.stages]


@pytest.fixture(scope="module")
def watch():
    return Watch()


@pytest.fixture(scope="module")
def slow_map(watch):
    dataset = Data.range(600).shuffle(600).map(slow).map(pair).prefetch(1)
    return diagnosis(dataset, input_workers=2, steps=watch)


def test_a_slow_map_is_found_and_named(slow_map):
    assert names(slow_map) == ["range", "shuffle", "map slow", "map pair", "prefetch", "shuffle and batch"]
    assert share(slow_map, "map slow (test_pipeline.py:") > 0.7


def test_a_parallel_map_is_tried_on_the_step(slow_map, watch):
    remedy = by_name(slow_map)["parallel map"]
    assert remedy.how.startswith("Give the map slow (test_pipeline.py:")
    assert remedy.how.endswith(") num_parallel_calls=tf.data.AUTOTUNE.")
    _, in_parallel, _, _ = watch.timings
    assert max(in_parallel) >= 2


def test_a_cache_helps_a_slow_map_most(slow_map):
    assert by_name(slow_map)["cache"].speedup > 5
    assert by_name(slow_map)["cache"].speedup_low > 1
    assert slow_map.remedies[0].name == "cache"
    assert "draws random numbers" in slow_map.remedies[0].caveat


def test_producers_are_tried_on_the_step(slow_map, watch):
    remedy = by_name(slow_map)["2 producers"]
    assert "ShardingPolicy.DYNAMIC" in remedy.how
    *_, of_producers = watch.timings
    assert max(of_producers) >= 2


def test_the_step_before_and_the_step_with_a_change_are_timed_in_turn(slow_map, watch):
    before, *changed = watch.timings
    assert [len(timings) for timings in changed] == [3, 3, 3]
    assert len(before) == 9


def test_remedies_come_in_the_order_of_what_they_give(slow_map):
    times = [remedy.step_after_s for remedy in slow_map.remedies]
    assert len(times) == 3
    assert times == sorted(times)


def test_a_batch_takes_as_long_as_its_examples(slow_map):
    per_batch = BATCH_SIZE * sum(stage.time_per_example_s for stage in slow_map.stages)
    assert 1 / 3 < slow_map.remedies[0].input_before_s / per_batch < 3


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
    assert advice.startswith("Generator slow_numbers (test_pipeline.py:")
    assert "as a map over a dataset of indices" in advice


def test_a_cheap_pipeline_has_no_cache_to_gain():
    arrays = (np.ones((50, 3), "float32"), np.ones(50, "float32"))
    found = diagnosis(Data.from_tensor_slices(arrays))
    assert names(found) == ["arrays", "shuffle and batch"]
    assert found.remedies == found.notes == ()


def with_blob(x):
    return {"blob": tf.zeros([2_000_000]) + tf.cast(x, tf.float32), "small": pair(x)[0]}, pair(x)[1]


def test_an_unused_feature_is_dropped_before_it_is_batched(real_time):
    dataset = Data.range(10).map(with_blob).cache().prefetch(1)
    found = diagnosis(dataset, unused=["x['blob']"], steps=time_real_steps, seconds=0.1)
    assert found.unused_features == ("x['blob']",)
    assert found.unused_share > 0.99
    remedy = by_name(found)["drop unused features"]
    assert remedy.how == "Leave x['blob'] out of the examples."
    assert remedy.input_after_s < remedy.input_before_s  # 64 MB per batch against a few bytes


def test_a_step_that_needs_its_unused_feature_gives_a_note():
    def picky(split):
        if split.dataset.element_spec[0]["blob"].shape == [0]:
            raise ValueError("blob must have 3 numbers")
        return time_steps(split)

    found = diagnosis(Data.range(10).map(with_small_blob), unused=["x['blob']"], steps=picky)
    assert "drop unused features" not in by_name(found)
    assert "Drop unused features could not be measured. ValueError: blob must have 3 numbers" in found.notes


def test_a_stage_that_cannot_be_built_again_gives_a_note():
    later = Data.range(200).map(slow).scan(tf.constant(0, tf.int64), running_total).map(pair)
    found = diagnosis(later)
    assert share(found, "map slow") > 0.6
    assert "parallel map" not in by_name(found)
    (note,) = found.notes
    assert note.startswith("Parallel map could not be tried: scan running_total (test_pipeline.py:")
    assert note.endswith("), a later stage, cannot be built again.")


def test_a_slow_interleave_reads_in_parallel():
    watch = Watch()
    found = diagnosis(Data.range(4).interleave(slow_part, cycle_length=4).map(pair), steps=watch)
    assert share(found, "interleave slow_part") > 0.6
    remedy = by_name(found)["parallel reads"]
    assert remedy.how.startswith("Give the interleave slow_part (test_pipeline.py:")
    assert max(watch.timings[1]) >= 2


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


def test_a_small_cache_is_filled_however_slow_the_machine_is():
    timed = time_stages(Data.range(12).map(slow).cache(), SLOW_S)
    assert [stage.name for stage in timed.stages] == ["cache"]
    assert timed.time_s < SLOW_S / 2


def test_a_cache_that_takes_long_to_fill_is_timed_as_in_the_first_epoch():
    timed = time_stages(Data.range(100_000).map(slow).cache(), SECONDS)
    assert [stage.name.split(" (")[0] for stage in timed.stages] == ["range", "map slow", "cache"]
    assert timed.notes == (
        "The cache was not full when it was timed: the times are those of the first epoch.",
    )


def test_a_large_shuffle_buffer_is_not_waited_for():
    timed = time_stages(Data.range(100_000).map(slow).shuffle(100_000), SECONDS)
    buffers = [int(stage.dataset._buffer_size) for stage in timed.stages if stage.name == "shuffle"]
    assert buffers == [4]  # a quarter of the time, at 51 ms each


def test_paired_datasets_are_not_given_to_producers():
    paired = Data.zip((Data.range(200).map(slow).map(lambda x: pair(x)[0]), Data.range(200).map(tf.identity)))
    found = diagnosis(paired.map(lambda x, y: (x, tf.cast(y, tf.float32))), input_workers=2)
    assert names(found)[:6] == ["range", "map slow", "map lambda", "range", "map identity", "zip"]
    assert share(found, "map slow") > 0.6
    assert found.notes == (
        "2 producers could not be tried: a tf.data service cannot divide the elements of zip.",
    )
    assert "parallel map" in by_name(found)


def test_examples_that_are_dicts_have_no_stage_of_ours():
    assert names(diagnosis(Data.range(50).map(lambda x: {"x": tf.cast(x, tf.float32)}))) == [
        "range",
        "map lambda",
        "shuffle and batch",
    ]


def test_a_fault_of_the_pipeline_under_a_remedy_is_a_note():
    asked = []

    def steps(split):
        asked.append(split.name)
        if len(asked) > 1:
            raise RuntimeError("the device has gone")
        return lambda seconds: 1.0

    found = diagnosis(Data.range(200).map(slow).map(pair), input_workers=1, steps=steps)
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


def test_large_arrays_are_gathered_without_what_nobody_reads(large_arrays, real_time):
    found = diagnose(large_arrays, BATCH_SIZE, 0.1, 2, ["x['blob']", "x['name']"], time_real_steps)
    assert names(found) == ["gather"]
    assert found.unused_share > 0.99
    remedy = by_name(found)["drop unused features"]
    assert remedy.how == "Leave x['blob'] and x['name'] out of the examples."
    assert remedy.input_after_s < remedy.input_before_s


def test_arrays_on_the_device_have_no_pipeline():
    split = ArraySplit("train", ({"a": np.ones((40, 3)), "b": np.ones((40, 1))}, np.ones(40)))
    found = diagnose(split, BATCH_SIZE, SECONDS, 2, ["x['b']"], time_steps)
    assert found.stages == found.remedies == ()
    assert (found.batch_size, found.unused_features, found.unused_share) == (BATCH_SIZE, ("x['b']",), 0.2)


def test_a_cache_beyond_the_memory_of_the_machine_or_of_the_process_is_not_tried(monkeypatch):
    monkeypatch.setattr(devices, "memory", lambda: MemoryUse(3 * 2**20, 5 * 2**20, 4 * 2**20))
    dataset = Data.range(100_000).map(slow).map(pair)
    (note,) = diagnosis(DatasetSplit("train", dataset.apply(known_size)).dataset).notes
    assert note == (
        "A cache could not be tried: the examples take 0.763 MiB, more than a quarter of the free memory "
        "(1.00 MiB)."
    )


def known_size(dataset):
    return dataset.apply(tf.data.experimental.assert_cardinality(100_000))


@pytest.mark.parametrize(
    ("pairs", "low"),
    [
        ([(2.0, 1.0)] * 3, 2.0),
        # Logarithms -s, 0 and s: their standard deviation is s, that of their mean s / 3 ** 0.5.
        ([(np.exp(-0.1), 1.0), (1.0, 1.0), (np.exp(0.1), 1.0)], np.exp(-2.91999 * 0.1 / 3**0.5)),
    ],
)
def test_the_lower_bound_of_a_speedup_is_that_of_students_t(pairs, low):
    assert lower_speedup(pairs) == pytest.approx(low, rel=1e-5)


def test_what_noise_makes_of_a_change_that_does_nothing_is_not_sure():
    times = iter([1.0, 1.0, 1.2, 1.0, 1.0, 1.05])
    split = DatasetSplit("train", Data.range(20).map(pair))
    bench = Bench(split, BATCH_SIZE, SECONDS, lambda split: lambda seconds: next(times))
    remedy = bench.tried(Change("nothing", "Do nothing.", lambda: nullcontext(split)))
    assert remedy.speedup > 1.04
    assert remedy.speedup_low < 1


def test_workers_that_cannot_be_stopped_end_the_diagnosis(monkeypatch):
    monkeypatch.setattr(producers, "_wait_until", gives_up)
    dataset = Data.range(200).map(slow).map(pair)
    with pytest.raises(SessionError, match=r"still busy .* session is given up"):
        diagnosis(dataset, input_workers=1, seconds=0.3)


def gives_up(condition):
    raise TimeoutError


def test_workers_of_a_tensorflow_that_does_not_tell_when_they_are_idle_are_not_started(monkeypatch):
    monkeypatch.delattr(tf.data.experimental.service.WorkerServer, "_num_tasks")
    with pytest.raises(AdvisorError, match="does not tell"), producers.produced(Data.range(3), 1):
        pass


def test_a_pipeline_that_this_tensorflow_hides_is_timed_as_a_whole(monkeypatch):
    flat = Data.range(200).map(slow).flat_map(Data.from_tensors)
    dataset = flat.map(with_small_blob)
    monkeypatch.delattr(flat, "_map_func")
    found = diagnosis(dataset, input_workers=1, unused=["x['blob']"], seconds=0.3)
    assert names(found) == ["pipeline", "shuffle and batch"]
    assert list(by_name(found)) == ["drop unused features"]
    assert found.notes == (
        f"The stage flat map could not be looked at with this version of TensorFlow ({tf.__version__}).",
    )


def test_a_shuffle_that_this_tensorflow_hides_is_timed_as_it_is(monkeypatch):
    shuffled = Data.range(200).map(slow).shuffle(2)
    monkeypatch.delattr(shuffled, "_buffer_size")
    timed = time_stages(shuffled, 0.3)
    assert [stage.name for stage in timed.stages][2] == "shuffle"
    assert timed.notes == ("The time of shuffle may include the filling of a shuffle buffer before it.",)


def with_small_blob(x):
    return {"blob": tf.zeros([3]), "small": pair(x)[0]}, pair(x)[1]
