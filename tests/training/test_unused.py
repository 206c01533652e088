"""What a model never reads is found in the trace of its step, and what it may read is left alone."""

import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from advisor.training.loop import loss_of, step_function
from advisor.training.unused import unused_features

BATCH = (
    {"image": tf.ones((2, 3)), "blob": tf.ones((2, 50)), "key": tf.constant(["a", "b"])},
    tf.ones((2, 1)),
)
PATHS = ["x['blob']", "x['image']", "x['key']", "y"]


def unused(forward, batch=BATCH, paths=PATHS):
    return unused_features(forward, batch, paths)


class Reads(keras.Model):
    """Reads the image, and what ``also`` makes of the inputs."""

    def __init__(self, also=lambda inputs: 0.0):
        super().__init__()
        self.dense, self.also = keras.layers.Dense(1), also

    def call(self, inputs):
        return self.dense(inputs["image"]) + self.also(inputs)


def model_of(also=lambda inputs: 0.0, **options):
    model = Reads(also)
    model.compile(optimizer="sgd", loss="mse", **options)
    model(BATCH[0])
    model.optimizer.build(model.trainable_variables)
    return model


def test_a_key_that_a_model_ignores_is_named():
    model = model_of()
    assert unused(lambda batch: loss_of(model, batch, True)) == ("x['blob']", "x['key']")


@pytest.mark.parametrize("xla", [False, True])
def test_a_whole_training_step_tells_the_same(xla):
    assert unused(step_function(model_of(), xla=xla)) == ("x['blob']", "x['key']")


def test_labels_and_weights_are_never_named():
    assert unused(lambda batch: batch[0]["image"] * 2) == ("x['blob']", "x['key']")


def test_nothing_is_named_where_everything_is_read():
    assert (
        unused(lambda batch: (batch[0]["blob"], batch[0]["image"], tf.strings.length(batch[0]["key"]))) == ()
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda batch: tf.cast(batch[0]["blob"], tf.float64),
        lambda batch: tf.reduce_sum(batch[0]["blob"]) + batch[1],
        lambda batch: tf.function(lambda one, two: two)(batch[0]["blob"], batch[1]),
    ],
    ids=["a cast", "a sum", "an argument"],
)
def test_what_is_computed_and_thrown_away_is_no_use(read):
    def forward(batch):
        read(batch)
        return batch[0]["image"]

    assert "x['blob']" in unused(forward)


@tf.function
def of_both(inputs, scale):
    return tf.reduce_sum(inputs["image"]) * scale, tf.reduce_sum(inputs["blob"])


@tf.function
def of_the_image(inputs):
    return of_both(inputs, 2.0)[0] + 1.0


@tf.function
def of_the_blob(inputs):
    return tf.reduce_mean(inputs["blob"]) + of_the_image(inputs)


@tf.function(jit_compile=True)
def of_the_blob_by_xla(image, blob):
    return tf.reduce_mean(image) + tf.reduce_mean(blob)


READERS = {
    "a nested function": of_the_blob,
    "a function compiled by XLA": lambda inputs: of_the_blob_by_xla(inputs["image"], inputs["blob"]),
    "a branch": lambda inputs: tf.cond(
        tf.reduce_sum(inputs["image"]) > 0, lambda: tf.reduce_sum(inputs["blob"]), lambda: 0.0
    ),
    "a loop": lambda inputs: tf.while_loop(
        lambda i, _: i < 3, lambda i, total: (i + 1, total + tf.reduce_sum(inputs["blob"])), (0, 0.0)
    )[1],
    "a mapped function": lambda inputs: tf.reduce_sum(tf.map_fn(tf.reduce_sum, inputs["blob"])),
    "Python": lambda inputs: tf.reshape(tf.py_function(tf.reduce_sum, [inputs["blob"]], tf.float32), []),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_a_model_reads_in_some_way_is_not_named(reader):
    model = model_of(READERS[reader])
    assert unused(lambda batch: loss_of(model, batch, True)) == ("x['key']",)


def test_a_nested_function_that_ignores_its_argument_does_not_use_it():
    @tf.function
    def ignoring(inputs):
        return tf.reduce_mean(inputs["image"])

    model = model_of(ignoring)
    assert unused(lambda batch: loss_of(model, batch, True)) == ("x['blob']", "x['key']")


def test_what_only_changes_the_state_is_used():
    seen = tf.Variable(0.0)

    def forward(batch):
        seen.assign_add(tf.reduce_sum(batch[0]["blob"]))
        return batch[0]["image"]

    assert unused(forward) == ("x['key']",)


def test_a_single_input_and_ragged_ones_are_told_apart():
    rows = tf.ragged.constant([[1.0], [2.0, 3.0]])
    batch = ((rows, tf.ones([2, 2])), tf.ones([2]))
    paths = ["x[0]", "x[1]", "y"]
    assert unused(lambda batch: batch[0][0].values, batch, paths) == ("x[1]",)
    assert unused(lambda batch: batch[0][1], batch, paths) == ("x[0]",)


def test_no_gradients_are_kept_of_what_was_traced():
    model = model_of(lambda inputs: tf.reduce_sum(keras.activations.silu(inputs["image"])))
    step = step_function(model, xla=False)
    before = len(gradient_registry._registry)
    assert unused(step) == ("x['blob']", "x['key']")
    assert len(gradient_registry._registry) == before


def test_what_a_function_is_given_is_read_where_this_tensorflow_hides_the_function(monkeypatch):
    inner = tf.function(lambda inputs: tf.reduce_sum(inputs["image"]))
    model = model_of(inner)
    monkeypatch.delattr(tf.Graph, "_get_function")
    assert unused(lambda batch: loss_of(model, batch, True)) == ()
