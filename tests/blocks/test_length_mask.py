"""Lengths as an implicit mask, which the layers behind see."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

LENGTHS = np.array([3, 5, 0], "int32")
KEPT = np.arange(5) < LENGTHS[:, None]


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 7), (3, 5, 2, 7)])
def test_length_mask_masks_and_zeroes_positions_after_the_end(shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    found = ka.blocks.LengthMask()(x, LENGTHS)
    kept = KEPT.reshape(3, 5, *(1 for _ in shape[2:]))
    np.testing.assert_array_equal(found, np.where(kept, x, 0))
    np.testing.assert_array_equal(keras_internals.get_mask(found), KEPT)


def test_the_layers_behind_it_see_the_mask():
    features = keras.Input((None, 4))
    lengths = keras.Input((), dtype="int32")
    x = ka.blocks.LengthMask()(features, lengths)
    model = keras.Model([features, lengths], ka.blocks.Pooling("mean")(x))
    x = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("float32")
    found = model([x, np.array([3])])
    np.testing.assert_allclose(found, x[:, :3].mean(axis=1), atol=1e-6)


def test_nan_in_the_padding_stays_there():
    x = np.full((1, 3, 2), np.nan, "float32")
    assert np.all(np.asarray(ka.blocks.LengthMask()(x, np.array([0]))) == 0)
