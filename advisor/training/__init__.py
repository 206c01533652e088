"""Models under training; the only room that knows TensorFlow and Keras."""
