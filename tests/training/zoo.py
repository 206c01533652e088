"""Small workloads of every kind that a session must train and evaluate right."""

import keras
import numpy as np

from advisor import Workload

EXAMPLES = {"train": 60, "validation": 45}
_noise = np.random.default_rng(0)


def _rows(count, *shape):
    return _noise.normal(size=(count, *shape)).astype("float32")


def _each(make):
    """Return the data of both splits, made once."""
    data = {name: make(count) for name, count in EXAMPLES.items()}
    return lambda: data


def _weights(count):
    return _noise.uniform(0.1, 2.0, size=count).astype("float32")


def dense(outputs, activation=None, **options):
    def build(hp):
        hidden = keras.layers.Dense(8, activation="tanh", **options)
        last = keras.layers.Dense(outputs, activation=activation)
        return keras.Sequential([keras.Input((5,)), hidden, last])

    return build


def normalized(hp):
    layers = [keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)]
    return keras.Sequential([keras.Input((5,)), *layers, keras.layers.Dense(1)])


def branched(hp):
    wide, deep = keras.Input((3,), name="wide"), keras.Input((4,), name="deep")
    joined = keras.layers.Concatenate()([wide, keras.layers.Dense(6, activation="relu")(deep)])
    outputs = {
        "kind": keras.layers.Dense(3, name="kind")(joined),
        "size": keras.layers.Dense(1, name="size")(joined),
    }
    return keras.Model({"wide": wide, "deep": deep}, outputs)


def listed(hp):
    first, second = keras.Input((3,)), keras.Input((3,))
    joined = keras.layers.Add()([first, second])
    one, two = keras.layers.Dense(1, name="one")(joined), keras.layers.Dense(2, name="two")(joined)
    return keras.Model([first, second], [one, two])


def tagger(hp):
    tokens = keras.Input((6,), dtype="int32")
    hidden = keras.layers.LSTM(5, return_sequences=True)(keras.layers.Embedding(9, 4, mask_zero=True)(tokens))
    return keras.Model(tokens, keras.layers.Dense(4)(hidden))


def pixels(hp):
    return keras.Sequential([keras.Input((6, 6, 1)), keras.layers.Conv2D(3, 3, padding="same")])


def unbuilt(hp):
    """Return a model that does not say what it takes."""
    return keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])


class Lazy(keras.Model):
    """Built at its first call."""

    def __init__(self):
        super().__init__()
        self.hidden, self.last = keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)
        self.noise = keras.layers.GaussianNoise(0.1)

    def call(self, x, training=False):
        return self.last(self.noise(self.hidden(x), training=training))


class OwnLoss(Lazy):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        return keras.ops.mean(keras.ops.square(y - y_pred)) + 0.1 * keras.ops.mean(keras.ops.abs(y_pred))


class OwnSteps(Lazy):
    """Reports under names that are not those of its metrics, as many tutorials do."""

    def __init__(self):
        super().__init__()
        self.total = keras.metrics.Mean(name="total")

    @property
    def metrics(self):
        return [self.total]

    def train_step(self, data):
        import tensorflow as tf

        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.square(y - self(x, training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        self.total.update_state(loss)
        return {"loss": self.total.result()}

    def test_step(self, data):
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        error = keras.ops.square(y - self(x, training=False))
        self.total.update_state(keras.ops.mean(error))
        return {"loss": self.total.result(), "rmse_free": keras.ops.mean(keras.ops.abs(error))}


class SelfMade(keras.Model):
    """Its whole loss is added by itself; draws random numbers in training from a generator of its own."""

    def __init__(self):
        super().__init__()
        self.code, self.out = keras.layers.Dense(3), keras.layers.Dense(5)
        self.seeds = keras.random.SeedGenerator(11)

    def call(self, x, training=False):
        code = self.code(x)
        noise = keras.random.normal(keras.ops.shape(code), seed=self.seeds) if training else 0.0
        drawn = self.out(code + 0.1 * noise)
        self.add_loss(keras.ops.mean(keras.ops.square(x - drawn)))
        return drawn


class ReadsInCall(keras.Model):
    """Reads a hyperparameter while it is called."""

    def __init__(self, hp):
        super().__init__()
        self.hp, self.dense = hp, keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x) * self.hp["factor"]


def own_sgd(hp):
    return keras.optimizers.SGD(hp.learning_rate, hp.beta_1)


def _tagged(count):
    tokens = _noise.integers(1, 9, size=(count, 6)).astype("int32")
    for row, length in zip(tokens, _noise.integers(1, 7, size=count), strict=True):
        row[length:] = 0
    return tokens, _noise.integers(0, 4, size=(count, 6)).astype("int32")


def _segmented(count):
    labels = _noise.integers(0, 3, size=(count, 6, 6)).astype("int32")
    labels[: count // 3, :3] = 255
    return _rows(count, 6, 6, 1), labels


def _branches(count):
    x = {"wide": _rows(count, 3), "deep": _rows(count, 4)}
    return x, {"kind": _noise.integers(0, 3, size=count).astype("int32"), "size": _rows(count, 1)}


def absolute(y_true, y_pred):
    return keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)


def reduced(y_true, y_pred):
    return keras.ops.mean(keras.ops.square(y_true - y_pred))


_regression = _each(lambda count: (_rows(count, 5), _rows(count, 1)))
_weighted = _each(lambda count: (_rows(count, 5), _rows(count, 1), _weights(count)))
_three_classes = _each(lambda count: (_rows(count, 5), _noise.integers(0, 3, size=count).astype("int32")))
_yes_no = _each(lambda count: (_rows(count, 5), _noise.integers(0, 2, size=(count, 1)).astype("float32")))
_tagged_data, _segmented_data = _each(_tagged), _each(_segmented)
_listed = _each(lambda count: ([_rows(count, 3), _rows(count, 3)], (_rows(count, 1), _rows(count, 2))))
_sparse, _squared = keras.losses.SparseCategoricalCrossentropy, keras.losses.MeanSquaredError
_auc = keras.metrics.AUC(name="auc")

ZOO = [
    Workload("classes", dense(3, "softmax"), _three_classes, "crossentropy", ["accuracy"], "sgd"),
    Workload("yes-no", dense(1, "sigmoid"), _yes_no, "binary_crossentropy", ["accuracy", _auc]),
    Workload("weighted", dense(1), _weighted, "mse", ["mae"]),
    Workload("by-weight", dense(1), _weighted, _squared(reduction="mean_with_sample_weight"), ["mae"]),
    Workload("sum", dense(1), _weighted, _squared(reduction="sum")),
    Workload("unreduced", dense(1), _regression, _squared(reduction=None)),
    Workload("function", dense(1), _weighted, absolute, [absolute]),
    Workload("reduced", dense(1), _regression, reduced),
    Workload(
        "penalties",
        dense(1, kernel_regularizer="l2", activity_regularizer="l1"),
        _regression,
        "mse",
        [keras.metrics.R2Score()],
    ),
    Workload("normalized", normalized, _regression, "mse", ["mae"], "nesterov"),
    Workload(
        "branched",
        branched,
        _each(_branches),
        {"kind": _sparse(from_logits=True), "size": "mse"},
        {"kind": ["accuracy"], "size": ["mae"]},
    ),
    Workload("listed", listed, _listed, ["mse", "mae"]),
    Workload("tagger", tagger, _tagged_data, _sparse(from_logits=True), ["accuracy"], "nadam"),
    Workload("pixels", pixels, _segmented_data, _sparse(from_logits=True, ignore_class=255)),
    Workload("lazy", lambda hp: Lazy(), _regression, "mse", ["mae"], "adamw"),
    Workload("unbuilt", unbuilt, _regression, "mse", optimizer="sgd"),
    Workload("own-loss", lambda hp: OwnLoss(), _regression, None, ["mae"]),
    Workload("own-steps", lambda hp: OwnSteps(), _regression),
    Workload("self-made", lambda hp: SelfMade(), _each(lambda count: (_rows(count, 5),))),
]
BY_NAME = {workload.name: workload for workload in ZOO}
