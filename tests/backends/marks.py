"""The mark of tests that cost much on TensorFlow and little on other backends."""

import keras
import pytest

# TensorFlow traces a graph of every model that a test trains or loads.
slow_on_tensorflow = (
    pytest.mark.slow
    if keras.backend.backend() == "tensorflow"
    else pytest.mark.skipif(False, reason="Other backends always run it.")
)
