"""Seeds, and which of them a model needs.

Seeding TensorFlow as a whole makes it forget how it prepared its compiled functions, so that the next call of
each takes a fraction of a second. It is avoided where a model draws through Keras, numpy and Python alone.
"""

import random
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

_STATEFUL = frozenset(
    {
        *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "RandomShuffle"),
        *("ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "Multinomial"),
    }
)
_SEEDS = 2**32


def valid_seed(seed: int) -> int:
    """Return ``seed`` in the range that every library takes."""
    return seed % _SEEDS


def seed_everything(seed: int) -> None:
    """Seed Python, numpy, Keras and TensorFlow."""
    keras.utils.set_random_seed(seed)


def seed_without_tensorflow(seed: int) -> None:
    """Seed Python and numpy, from which Keras draws the seeds of its initializers and layers."""
    random.seed(seed)
    np.random.seed(seed)


def draws_statefully(graph: tf.Graph) -> bool:
    """Return whether ``graph`` draws by operations whose seed is fixed when they are traced."""
    definition = graph.as_graph_def()
    functions = (function.node_def for function in definition.library.function)
    return any(_has_stateful(nodes) for nodes in (definition.node, *functions))


def _has_stateful(nodes: Iterable[tf.compat.v1.NodeDef]) -> bool:
    return any(node.op in _STATEFUL for node in nodes)
