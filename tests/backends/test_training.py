"""Models train on every backend."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.backends.marks import slow_on_tensorflow
from tests.gradients import enabled

# Where TensorFlow may choose, it chooses dense.
KERNELS = [None, "banded", "chunked"] + ["dense"] * (keras.backend.backend() != "tensorflow")


@slow_on_tensorflow
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_model_learns(kernel):
    """Draw tokens, each with the token before it as label: attention must look one back."""
    tokens = keras.Input((None,), dtype="int32")
    attention = ka.attention.MultiHeadAttention(
        2, 8, mask=ka.masks.Window(3), position="rotary", dropout=0.0, implementation=kernel
    )
    x = ka.blocks.TokenEmbedding(6, 16)(tokens)
    x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(16), dropout=0.1)(x)
    model = keras.Model(tokens, keras.layers.Dense(6)(x))
    x = np.random.default_rng(0).integers(1, 6, size=(256, 12)).astype("int32")
    model.compile(keras.optimizers.Adam(0.02), ka.training.MaskedSparseCategoricalCrossentropy())
    with enabled():
        losses = model.fit(x, np.roll(x, 1, axis=1), epochs=6, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0], losses
