"""Training with Keras 3 on TensorFlow: the only room that knows either.

TensorFlow reads its environment when it is first imported, so that is set up here, before any module of
the room can import it.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
