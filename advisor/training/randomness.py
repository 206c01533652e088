"""Seeds, and which of them a model needs.

Seeding TensorFlow as a whole makes it forget how it prepared its compiled functions, so that the next call of
each takes a fraction of a second. It is avoided where a model draws through Keras, numpy and Python alone.
"""

import random

import keras
import numpy as np

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
