"""Workloads with a planted fault each, and healthy ones: models and data for ``verdict_cases.py``.

Delays and data are real: what is slow sleeps, computes, decodes or reads files.
"""

import json
import statistics
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

LOOK_UP_S = 0.001
DISK_BYTES_PER_S = 8e6
MOST_BYTES_READ = 16 * 1024
SLOW_EXAMPLES = 256  # each made at the cost of about a millisecond
VALIDATION_EXAMPLES = 64


def labelled(examples: int, *shape: int) -> tuple[Any, Any]:
    """Return random examples, in one of ten classes by the largest of their first ten numbers."""
    x = np.random.default_rng(examples).normal(size=(examples, *shape)).astype("float32")
    return x, x.reshape(examples, -1)[:, :10].argmax(axis=1).astype("int32")


def dense(inputs: int, *widths: int) -> Any:
    hidden = [keras.layers.Dense(width, activation="relu") for width in widths]
    return keras.Sequential([keras.Input((inputs,)), *hidden, keras.layers.Dense(10)])


def small_model(hp):
    return dense(16, 32)


def middling_model(hp):
    return dense(64, 512, 512)


def large_model(hp):
    return dense(64, 1024, 1024)


def small_validation():
    return labelled(VALIDATION_EXAMPLES, 16)


# A sleep in map: every example waits for an answer from elsewhere.


def look_up(x, y):
    def wait(value):
        time.sleep(LOOK_UP_S)
        return value

    return tf.ensure_shape(tf.py_function(wait, [x], tf.float32), x.shape), y


def looked_up_data():
    train = tf.data.Dataset.from_tensor_slices(labelled(SLOW_EXAMPLES, 16)).map(look_up)
    return {"train": train, "validation": small_validation()}


# A slow generator: text is read and summarized in plain Python.


def summaries(lines):
    for line in lines:
        numbers = json.loads(line)
        deviations = [statistics.pstdev(numbers[start::16]) for start in range(16)]
        yield np.array(deviations, "float32"), np.int32(np.argmax(deviations[:10]))


def generated_data():
    rows = np.random.default_rng(0).normal(size=(SLOW_EXAMPLES, 500)).round(3).tolist()
    lines = np.array([json.dumps(row) for row in rows])
    specs = (tf.TensorSpec((16,), tf.float32), tf.TensorSpec((), tf.int32))
    train = tf.data.Dataset.from_generator(summaries, output_signature=specs, args=(lines,))
    return {"train": train, "validation": small_validation()}


# A large feature that the model never reads: pictures are decoded and thrown away.


class SignalModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense_layers = dense(16, 32)

    def call(self, x):
        return self.dense_layers(x["signal"])


def signal_model(hp):
    return SignalModel()


def decode_picture(signal, jpeg, y):
    picture = tf.ensure_shape(tf.io.decode_jpeg(jpeg, channels=3), (128, 128, 3))
    return {"signal": signal, "picture": tf.image.convert_image_dtype(picture, tf.float32)}, y


def pictured(examples):
    pixels = np.random.default_rng(0).integers(0, 256, (examples, 128, 128, 3), dtype=np.uint8)
    jpegs = [tf.io.encode_jpeg(picture).numpy() for picture in pixels]
    signal, y = labelled(examples, 16)
    return tf.data.Dataset.from_tensor_slices((signal, jpegs, y)).map(decode_picture)


def pictured_data():
    return {"train": pictured(SLOW_EXAMPLES), "validation": pictured(VALIDATION_EXAMPLES)}


# Files read one after the other, unshuffled, from a slow disk: Python's own library.


class SlowDisk:
    """Reads the beginning of files no faster than ``bytes_per_s``, however many are read at once."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s, self._free_at, self._lock = bytes_per_s, 0.0, threading.Lock()

    def read(self, path: bytes) -> bytes:
        with Path(path.decode()).open("rb") as file:
            content = file.read(MOST_BYTES_READ)
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + len(content) / self._bytes_per_s
            wait_s = self._free_at - time.monotonic()
        time.sleep(max(0.0, wait_s))
        return content


def source_model(hp):
    return dense(128, 32)


def source_data():
    """Tell the longer modules from the shorter by how often each character stands in them."""
    disk = SlowDisk(DISK_BYTES_PER_S)

    def read_source(path):
        content = tf.ensure_shape(tf.numpy_function(disk.read, [path], tf.string), ())
        codes = tf.cast(tf.io.decode_raw(content, tf.uint8), tf.int32)
        counts = tf.cast(tf.math.bincount(codes, minlength=128, maxlength=128), tf.float32)
        return counts / (tf.reduce_sum(counts) + 1), tf.cast(tf.size(codes) == MOST_BYTES_READ, tf.int32)

    library = Path(sysconfig.get_path("stdlib"))
    files = [str(path) for path in (*sorted(library.glob("*.py")), *sorted(library.glob("*/*.py")))]
    paths = files[: SLOW_EXAMPLES + VALIDATION_EXAMPLES]
    sources = tf.data.Dataset.from_tensor_slices(paths).map(read_source)
    return {"train": sources.skip(VALIDATION_EXAMPLES), "validation": sources.take(VALIDATION_EXAMPLES)}


# Many layers with next to nothing to compute.


def deep_and_tiny_model(hp):
    return dense(16, *[4] * 20)


def many_examples():
    return {"train": labelled(50_000, 16), "validation": small_validation()}


# Arithmetic alone.


def convolutions(*filters: int) -> Any:
    layers = [keras.layers.Conv2D(count, 3, padding="same", activation="relu") for count in filters]
    pool = keras.layers.MaxPooling2D(2)
    return keras.Sequential(
        [keras.Input((32, 32, 3)), *layers, pool, keras.layers.Flatten(), keras.layers.Dense(10)]
    )


def convolutional_model(hp):
    return convolutions(32, 32)


def pictures():
    return {"train": labelled(1024, 32, 32, 3), "validation": labelled(VALIDATION_EXAMPLES, 32, 32, 3)}


# A training step that calls Python.


class Watched(keras.Sequential):
    """Logs after every step how the weights are distributed, from copies in the host's memory."""

    def train_step(self, data):
        logs = super().train_step(data)
        tf.py_function(log_weights, [weight.value for weight in self.trainable_variables], [])
        return logs


def log_weights(*weights):
    counts = [np.histogram(weight.numpy(), bins=50)[0].tolist() for weight in weights]
    with Path(tempfile.gettempdir(), "weights.log").open("a") as file:
        file.write(f"{json.dumps(counts)}\n")


def watched_model(hp):
    return Watched(middling_model(hp).layers)


def middling_data():
    return {"train": labelled(8192, 64), "validation": labelled(VALIDATION_EXAMPLES, 64)}


# Too little memory: many weights to update, and large activations for each example.


def memory_hungry_model(hp):
    layers = keras.layers
    expand = [layers.Reshape((2048, 1)), layers.Dense(256, activation="relu"), layers.Dense(1)]
    return keras.Sequential(
        [*dense(64, 2048, 4096, 2048).layers[:-1], *expand, layers.Flatten(), layers.Dense(10)]
    )


# Too few examples.


def hundred_examples():
    return {"train": labelled(100, 64), "validation": labelled(VALIDATION_EXAMPLES, 64)}


# Healthy pipelines.


def augment(x, y):
    return tf.image.random_brightness(tf.image.random_flip_left_right(x), 0.1), y


def augmented_data():
    train = tf.data.Dataset.from_tensor_slices(labelled(1024, 32, 32, 3))
    train = train.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return {"train": train, "validation": labelled(VALIDATION_EXAMPLES, 32, 32, 3)}


def cached_data():
    data = looked_up_data()
    return {**data, "train": data["train"].cache()}


def wide_model(hp):
    return dense(16, 1024, 1024)


def serialized(x, y):
    features = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
        "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def parse(record):
    features = {"x": tf.io.FixedLenFeature((64,), tf.float32), "y": tf.io.FixedLenFeature((), tf.int64)}
    parsed = tf.io.parse_single_example(record, features)
    return parsed["x"], parsed["y"]


def recorded_data():
    x, y = labelled(2048, 64)
    files = [f"{tempfile.mkdtemp()}/{part}.tfrecord" for part in range(4)]
    for part, file in enumerate(files):
        with tf.io.TFRecordWriter(file) as writer:
            for example in zip(x[part::4], y[part::4], strict=True):
                writer.write(serialized(*example))
    records = tf.data.TFRecordDataset(files, num_parallel_reads=2)
    train = records.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return {"train": train, "validation": labelled(VALIDATION_EXAMPLES, 64)}


def sliced_data():
    data = middling_data()
    return {**data, "train": tf.data.Dataset.from_tensor_slices(data["train"])}
