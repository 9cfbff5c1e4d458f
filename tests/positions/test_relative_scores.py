"""Products of rows and tables of each head are reproducible."""

import numpy as np
import pytest

import keras_attention as ka

D = 8


@pytest.mark.slow
@pytest.mark.parametrize("position", ["transformer_xl", lambda: ka.positions.Disentangled(4)])
@pytest.mark.parametrize("batch", [2, 3])
def test_products_with_one_head_are_reproducible(position, batch):
    """Broadcast a batch against one head, which TensorFlow 2.21 with oneDNN gets wrong."""
    position = position() if callable(position) else position
    layer = ka.attention.MultiHeadAttention(1, 4, mask="causal", position=position)
    x = np.random.default_rng(0).normal(size=(batch, 5, D)).astype("float32")
    expected = np.array(layer(x, x))
    alone = np.concatenate([np.array(layer(row, row)) for row in np.split(x, batch)])
    np.testing.assert_allclose(expected, alone, atol=1e-5)
    for _ in range(20):
        np.testing.assert_array_equal(np.array(layer(x, x)), expected)
