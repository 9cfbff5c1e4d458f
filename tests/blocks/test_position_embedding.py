"""Positions that are added to vectors."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

X = np.random.default_rng(0).normal(size=(2, 7, 6)).astype("float32")


@pytest.mark.parametrize("position", ["sinusoidal", ka.positions.Learned(9)])
def test_position_embedding_adds_its_position(position):
    layer = ka.blocks.PositionEmbedding(position)
    output = layer(ka.blocks.LengthMask()(X, np.array([7, 7])))
    np.testing.assert_allclose(output, layer.position.embed(X), atol=1e-6)
    assert not np.allclose(output, X, atol=1e-2)
    assert keras_internals.get_mask(output) is not None


def test_refuses_positions_inside_attention():
    with pytest.raises(ValueError, match="(?i)rotary.*cannot be added"):
        ka.blocks.PositionEmbedding("rotary")
    with pytest.raises(ValueError, match="position=None.* adds nothing"):
        ka.blocks.PositionEmbedding(None)
    with pytest.raises(ValueError, match="longer than Learned"):
        ka.blocks.PositionEmbedding(ka.positions.Learned(6))(X)
