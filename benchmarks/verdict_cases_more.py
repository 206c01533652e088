"""Twenty further cases for ``verdicts.py``: ten planted faults and ten healthy pipelines."""

import io
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from verdict_cases import Case, workload
from verdict_workloads import VALIDATION_EXAMPLES, dense, labelled

from advisor.records.bottleneck import BottleneckKind
from advisor.records.description import Configuration, Fingerprint
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome, MeasurementRun
from advisor.records.session import BlockTiming

AUTOTUNE = tf.data.AUTOTUNE
layers = keras.layers


def split(examples: int, *shape: int) -> dict[str, Any]:
    return {"train": labelled(examples, *shape), "validation": labelled(VALIDATION_EXAMPLES, *shape)}


def slices(examples: int, *shape: int) -> Any:
    return tf.data.Dataset.from_tensor_slices(labelled(examples, *shape))


def classifier(*inner: Any) -> Any:
    return keras.Sequential([*inner, layers.Dense(10)])


# Pictures are altered by numpy, one after the other.


def light_convolutions(hp):
    relu = {"padding": "same", "activation": "relu"}
    return classifier(
        keras.Input((40, 40, 3)),
        layers.Conv2D(32, 3, strides=2, **relu),
        layers.Conv2D(48, 3, strides=2, **relu),
        layers.GlobalAveragePooling2D(),
    )


def shift_and_blot(picture):
    rng = np.random.default_rng()
    shifted = np.roll(picture, rng.integers(-4, 5, 2), axis=(0, 1))
    top, left = rng.integers(0, 32, 2)
    shifted[top : top + 8, left : left + 8] = 0
    return shifted + rng.normal(0, 0.05, picture.shape).astype("float32")


def alter(x, y):
    return tf.ensure_shape(tf.numpy_function(shift_and_blot, [x], tf.float32), x.shape), y


def altered_data():
    return {**split(1, 40, 40, 3), "train": slices(512, 40, 40, 3).map(alter)}


# Rows come from a database in pages, each of which takes a moment.


PAGE_ROWS = 64


def pages(page_s: float, rows: int, *shape: int) -> Iterator[tuple[Any, Any]]:
    x, y = labelled(rows, *shape)
    for start in range(0, rows, PAGE_ROWS):
        time.sleep(page_s)
        yield x[start : start + PAGE_ROWS], y[start : start + PAGE_ROWS]


def series_by_row():
    for x, y in pages(0.016, 512, 48, 32):
        yield from zip(x, y, strict=True)


def paged_data():
    specs = (tf.TensorSpec((48, 32), tf.float32), tf.TensorSpec((), tf.int32))
    train = tf.data.Dataset.from_generator(series_by_row, output_signature=specs)
    return {**split(1, 48, 32), "train": train}


# Lines of text are parsed one at a time.


COLUMNS = 80


def written_lines(examples: int, files: int) -> list[str]:
    """Write comma-separated files, the class in the last column; return their paths."""
    x, y = labelled(examples, COLUMNS)
    paths = [f"{tempfile.mkdtemp()}/{part}.csv" for part in range(files)]
    for part, path in enumerate(paths):
        rows = np.column_stack([x[part::files], y[part::files]])
        np.savetxt(path, rows, "%.5f", delimiter=",")
    return paths


def parse_line(line):
    numbers = tf.strings.to_number(tf.strings.split(line, ","))
    return tf.ensure_shape(numbers[:COLUMNS], (COLUMNS,)), tf.cast(numbers[COLUMNS], tf.int32)


def lines_model(hp):
    return dense(COLUMNS, 384, 192)


def lines_data():
    train = tf.data.TextLineDataset(written_lines(1024, 1)).map(parse_line)
    return {**split(1, COLUMNS), "train": train}


# Compressed archives are opened one by one, for a spectrogram that the model does not read.


class SummaryModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense_layers = dense(20, 128, 64)

    def call(self, x):
        return self.dense_layers(x["summary"])


def summary_model(hp):
    return SummaryModel()


def archives(examples: int) -> Any:
    folder = Path(tempfile.mkdtemp())
    summaries, y = labelled(examples, 20)
    loudness = np.random.default_rng(1).integers(0, 90, (examples, 96, 64)).astype("float32")
    for number in range(examples):
        np.savez_compressed(folder / f"{number}.npz", summary=summaries[number], spectrogram=loudness[number])

    def load(path):
        with np.load(io.BytesIO(Path(path.numpy().decode()).read_bytes())) as archive:
            return archive["summary"], archive["spectrogram"]

    def open_archive(path, y):
        summary, spectrogram = tf.py_function(load, [path], [tf.float32, tf.float32])
        x = {
            "summary": tf.ensure_shape(summary, (20,)),
            "spectrogram": tf.ensure_shape(spectrogram, (96, 64)),
        }
        return x, y

    paths = [str(folder / f"{number}.npz") for number in range(examples)]
    return tf.data.Dataset.from_tensor_slices((paths, y)).map(open_archive)


def archived_data():
    return {"train": archives(256), "validation": archives(VALIDATION_EXAMPLES)}


# Layers ask numpy for a percentile.


class ClipOutliers(layers.Layer):
    def call(self, x):
        limit = tf.numpy_function(lambda v: np.float32(np.percentile(np.abs(v), 99)), [x], tf.float32)
        limit = tf.ensure_shape(limit, ())
        return tf.clip_by_value(x, -limit, limit)


def clipping_model(hp):
    def clipped(width):
        return [layers.Dense(width, activation="relu"), ClipOutliers()]

    return classifier(keras.Input((100,)), ClipOutliers(), *clipped(384), *clipped(192))


def clipping_data():
    return split(4096, 100)


# A recurrent net of few numbers.


def small_recurrent_model(hp):
    return classifier(keras.Input((30, 3)), layers.SimpleRNN(6))


def short_series():
    return split(4096, 30, 3)


# Orthogonal weights cost the same at each batch size; activations fill the memory.


def orthogonal_model(hp):
    orthogonal = keras.regularizers.OrthogonalRegularizer(0.001)
    return classifier(
        keras.Input((64,)),
        layers.Dense(1536, activation="relu", kernel_regularizer="l2"),
        layers.Dense(1536, activation="relu", kernel_regularizer=orthogonal),
        layers.Reshape((1536, 1)),
        layers.Dense(320, activation="relu"),
        layers.GlobalMaxPooling1D(),
    )


def orthogonal_data():
    return split(2048, 64)


# Few rows of many numbers.


def genes_model(hp):
    return dense(6000, 128)


def patients():
    return split(40, 6000)


# Attention.


def attention_model(hp):
    x = keras.Input((48, 32))
    attended = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
    widened = layers.Dense(32)(layers.Dense(128, activation="gelu")(attended))
    pooled = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(attended + widened))
    return keras.Model(x, layers.Dense(10)(pooled))


def series():
    return split(1024, 48, 32)


# Four workers, one of which is slower.


def sweep_of_four_workers() -> MeasurementRun:
    rng = np.random.default_rng(3)

    def blocks(seconds_per_step: float) -> tuple[BlockTiming, ...]:
        return tuple(BlockTiming(8, 8 * seconds_per_step * rng.lognormal(0, 0.03), 1.0) for _ in range(16))

    def measurement(batch_size: int) -> BatchMeasurement:
        usual_s = 0.006 + 90e-6 * batch_size / 4
        slow_s = 1.7 * usual_s
        return BatchMeasurement(
            batch_size,
            MeasurementOutcome.OK,
            blocks=blocks(slow_s + 0.0008),
            compute_blocks=blocks(slow_s + 0.0006),
            input_blocks=blocks(0.2 * usual_s),
            worker_blocks=(blocks(usual_s), blocks(slow_s), blocks(usual_s), blocks(0.97 * usual_s)),
        )

    return MeasurementRun(
        "four-workers",
        Fingerprint("model", "optimizer", "loss", "shape", "content", "target", "configuration", "versions"),
        Configuration(workers=4),
        {},
        tuple(measurement(2**power) for power in range(6, 12)),
        "2026-01-01T00:00",
    )


# Healthy: a table of numbers beside a category, as arrays.


def shop_model(hp):
    shop, numbers = keras.Input((), name="shop", dtype="int32"), keras.Input((12,), name="numbers")
    joined = layers.Concatenate()([layers.Embedding(500, 16)(shop), numbers])
    hidden = layers.Dense(256, activation="relu")(layers.Dense(256, activation="relu")(joined))
    return keras.Model({"shop": shop, "numbers": numbers}, layers.Dense(10)(hidden))


def shops(examples: int) -> tuple[Any, Any]:
    numbers, y = labelled(examples, 12)
    shop = np.random.default_rng(2).integers(0, 500, examples).astype("int32")
    return {"shop": shop, "numbers": numbers}, y


def shop_data():
    return {"train": shops(4096), "validation": shops(VALIDATION_EXAMPLES)}


# Healthy: the same as a dataset; the category is text, looked up in parallel.


def named_shop_model(hp):
    shop, numbers = keras.Input((), name="shop", dtype="int64"), keras.Input((12,), name="numbers")
    joined = layers.Concatenate()([layers.Embedding(500, 16)(shop), numbers])
    hidden = layers.Dropout(0.2)(layers.Dense(1280, activation="relu")(joined))
    hidden = layers.Dense(1280, activation="relu")(hidden)
    return keras.Model({"shop": shop, "numbers": numbers}, layers.Dense(10)(hidden))


def named_shops(examples: int) -> Any:
    x, y = shops(examples)
    names = np.array([f"shop {number}" for number in x["shop"]])

    def number_shop(features, y):
        return {**features, "shop": tf.strings.to_hash_bucket_fast(features["shop"], 500)}, y

    train = tf.data.Dataset.from_tensor_slices(({**x, "shop": names}, y))
    return train.map(number_shop, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


def named_shop_data():
    return {"train": named_shops(2048), "validation": named_shops(VALIDATION_EXAMPLES)}


# Healthy: parsed lines are kept.


def kept_lines_model(hp):
    return dense(COLUMNS, 896, 896)


def kept_lines_data():
    data = lines_data()
    return {**data, "train": data["train"].cache()}


# Healthy: several files of lines are read and parsed in parallel.


def dropout_model(hp):
    hidden = [layers.Dense(1792, activation="relu"), layers.Dropout(0.3)]
    return classifier(keras.Input((COLUMNS,)), *hidden, layers.Dense(1792, activation="relu"))


def parse_columns(line):
    *numbers, label = tf.io.decode_csv(line, [0.0] * (COLUMNS + 1))
    return tf.stack(numbers), tf.cast(label, tf.int32)


def many_lines_data():
    files = tf.data.Dataset.from_tensor_slices(written_lines(1024, 4))
    lines = files.interleave(tf.data.TextLineDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)
    train = lines.map(parse_columns, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    return {**split(1, COLUMNS), "train": train}


# Healthy: pictures are altered in parallel, for a net with more to do.


def normalized_convolutions(*filters: int) -> Any:
    def block(count):
        convolution = layers.Conv2D(count, 3, padding="same", use_bias=False)
        return [convolution, layers.BatchNormalization(), layers.ReLU()]

    first, second = filters
    inner = [*block(first), layers.MaxPooling2D(2), *block(second), layers.GlobalAveragePooling2D()]
    return classifier(keras.Input((40, 40, 3)), *inner)


def heavier_convolutions(hp):
    return normalized_convolutions(24, 32)


def heaviest_convolutions(hp):
    return normalized_convolutions(32, 48)


def crop_and_degrade(x, y):
    resized = tf.image.resize(tf.image.random_crop(x, (32, 32, 3)), (40, 40))
    contrasted = tf.clip_by_value(tf.image.random_contrast(resized, 0.8, 1.2), 0, 1)
    return tf.image.random_jpeg_quality(contrasted, 70, 95), y


def cropped_data():
    train = slices(512, 40, 40, 3).map(crop_and_degrade, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    return {**split(1, 40, 40, 3), "train": train}


def mirror_and_dim(picture):
    mirrored = picture[:, ::-1] if random.random() < 0.5 else picture
    return mirrored * np.float32(random.uniform(0.8, 1.0))


def mirrored(x, y):
    return tf.ensure_shape(tf.numpy_function(mirror_and_dim, [x], tf.float32), x.shape), y


def mirrored_data():
    train = slices(512, 40, 40, 3).map(mirrored, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    return {**split(1, 40, 40, 3), "train": train}


# Healthy: TFRecords of PNG files.


def png_record(pixels, y):
    features = {
        "png": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_png(pixels).numpy()])),
        "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def decode_png(record):
    features = {"png": tf.io.FixedLenFeature((), tf.string), "y": tf.io.FixedLenFeature((), tf.int64)}
    parsed = tf.io.parse_single_example(record, features)
    pixels = tf.ensure_shape(tf.io.decode_png(parsed["png"], channels=3), (40, 40, 3))
    return tf.image.convert_image_dtype(pixels, tf.float32), tf.cast(parsed["y"], tf.int32)


def png_data():
    pixels = np.random.default_rng(4).integers(0, 256, (512, 40, 40, 3), dtype=np.uint8)
    files = [f"{tempfile.mkdtemp()}/{part}.tfrecord" for part in range(2)]
    for part, file in enumerate(files):
        with tf.io.TFRecordWriter(file) as writer:
            for picture in pixels[part::2]:
                writer.write(png_record(picture, int(picture[:, :, 0].mean()) % 10))
    records = tf.data.TFRecordDataset(files, num_parallel_reads=2)
    train = records.map(decode_png, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    return {**split(1, 40, 40, 3), "train": train}


# Healthy: sentences of many lengths.


def sentence_model(hp):
    return classifier(keras.Input((None,)), layers.Embedding(2000, 48, mask_zero=True), layers.GRU(64))


def sentences(examples: int) -> Any:
    rng = np.random.default_rng(examples)
    lengths = rng.integers(5, 60, examples)
    words = tf.RaggedTensor.from_row_lengths(rng.integers(1, 2000, lengths.sum()), lengths)
    kinds = tf.constant(lengths % 10, tf.int32)
    return tf.data.Dataset.range(examples).map(lambda number: (words[number], kinds[number]))


def sentence_data():
    return {"train": sentences(1024), "validation": sentences(VALIDATION_EXAMPLES)}


# Healthy: series for a long short-term memory.


def lstm_model(hp):
    return classifier(keras.Input((40, 8)), layers.LSTM(64), layers.Dropout(0.2))


def lstm_data():
    return split(1024, 40, 8)


# Healthy: pages come from a database while a heavy net computes.


def heavy_model(hp):
    return dense(24, 2048, 2048)


def unbatched_pages_data():
    specs = (tf.TensorSpec((None, 24), tf.float32), tf.TensorSpec((None,), tf.int32))
    train = tf.data.Dataset.from_generator(lambda: pages(0.009, 512, 24), output_signature=specs)
    return {**split(1, 24), "train": train.unbatch().prefetch(AUTOTUNE)}


FEW = {"batch_sizes": [8, 32, 128]}
UP_TO_64 = {"batch_sizes": {"minimum": 4, "maximum": 64}}
FROM_16 = {"batch_sizes": [16, 32, 64]}
FROM_32 = {"batch_sizes": [32, 128, 512]}
LARGE = {"batch_sizes": [32, 64, 128, 256]}
LITTLE_MEMORY = {"batch_sizes": [8, 16, 32, 64, 128, 256], "memory_limit": "1.35GiB"}

ALTERED = workload("altered", light_convolutions, altered_data)
PAGES = workload("pages", attention_model, paged_data)
LINES = workload("lines", lines_model, lines_data)
ARCHIVES = workload("archives", summary_model, archived_data)
CLIPPED = workload("clipped", clipping_model, clipping_data)
RECURRENT = workload("small-recurrent", small_recurrent_model, short_series)
ORTHOGONAL = workload("orthogonal", orthogonal_model, orthogonal_data)
GENES = workload("genes", genes_model, patients)
ATTENTION = workload("attention", attention_model, series)

PLANTS = [
    Case("numpy augmentation", ALTERED, BottleneckKind.INPUT, FROM_16, "alter"),
    Case("generator with pauses", PAGES, BottleneckKind.INPUT, FROM_16, "generator"),
    Case("serial text parsing", LINES, BottleneckKind.INPUT, FROM_32, "parse_line"),
    Case("archives, mostly unused", ARCHIVES, BottleneckKind.INPUT, FEW, "open_archive", "x['spectrogram']"),
    Case("percentiles by numpy", CLIPPED, BottleneckKind.HOST, FROM_32),
    Case("small recurrent net", RECURRENT, BottleneckKind.DISPATCH, UP_TO_64),
    Case("memory for activations", ORTHOGONAL, BottleneckKind.MEMORY, LITTLE_MEMORY),
    Case("40 patients", GENES, BottleneckKind.DATA),
    Case("attention", ATTENTION, BottleneckKind.COMPUTE, LARGE),
    Case("slow worker among four", sweep_of_four_workers(), BottleneckKind.SYNCHRONIZATION),
]

SHOPS = workload("shops", shop_model, shop_data)
NAMED_SHOPS = workload("named-shops", named_shop_model, named_shop_data)
KEPT_LINES = workload("kept-lines", kept_lines_model, kept_lines_data)
MANY_LINES = workload("many-lines", dropout_model, many_lines_data)
CROPPED = workload("cropped", heavier_convolutions, cropped_data)
MIRRORED = workload("mirrored", heaviest_convolutions, mirrored_data)
PNGS = workload("pngs", heavier_convolutions, png_data)
SENTENCES = workload("sentences", sentence_model, sentence_data)
LSTM = workload("lstm", lstm_model, lstm_data)
UNBATCHED = workload("unbatched-pages", heavy_model, unbatched_pages_data)

HEALTHY = [
    Case("several inputs", SHOPS, None, FEW),
    Case("text categories, parallel", NAMED_SHOPS, None, FEW),
    Case("parsed text, cached", KEPT_LINES, None, FEW),
    Case("text files, parallel", MANY_LINES, None, FEW),
    Case("augmentation, parallel", CROPPED, None, FROM_16),
    Case("numpy, parallel", MIRRORED, None, FROM_16),
    Case("PNG in TFRecord", PNGS, None, FROM_16),
    Case("sentences of any length", SENTENCES, None, FROM_16),
    Case("LSTM", LSTM, None, FEW),
    Case("pages ahead of time", UNBATCHED, None, FEW),
]
