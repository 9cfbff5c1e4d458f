"""Lengths as an implicit mask, and rows of a fixed length."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

LENGTHS = np.array([3, 5, 0], "int32")
MASK = np.arange(5) < LENGTHS[:, None]
X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 7), (3, 5, 2, 7)])
def test_length_mask_masks_and_zeroes_positions_after_the_end(shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    output = ka.blocks.LengthMask()(x, LENGTHS)
    mask = MASK.reshape(3, 5, *(1 for _ in shape[2:]))
    np.testing.assert_array_equal(output, np.where(mask, x, 0))
    np.testing.assert_array_equal(keras_internals.get_mask(output), MASK)


def test_later_layers_use_the_length_mask():
    features = keras.Input((None, 4))
    lengths = keras.Input((), dtype="int32")
    x = ka.blocks.LengthMask()(features, lengths)
    model = keras.Model([features, lengths], ka.blocks.Pooling("mean")(x))
    x = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("float32")
    np.testing.assert_allclose(model([x, np.array([3])]), x[:, :3].mean(axis=1), atol=1e-6)


def test_length_mask_replaces_nan_in_padding():
    x = np.full((1, 3, 2), np.nan, "float32")
    assert np.all(np.asarray(ka.blocks.LengthMask()(x, np.array([0]))) == 0)


@pytest.mark.parametrize("length", [3, 5, 11])
@pytest.mark.parametrize("axes", [2, 3])
def test_fixed_length_cuts_and_fills_rows(length, axes):
    x = X if axes == 3 else X[:, :, 0]
    expected = np.zeros((2, length, *x.shape[2:]), "float32")
    expected[:, : min(5, length)] = x[:, :length]
    np.testing.assert_array_equal(ka.blocks.FixedLength(length)(x), expected)


def test_fixed_length_drops_the_mask():
    x = ka.blocks.LengthMask()(X, np.array([5, 2]))
    assert keras_internals.get_mask(ka.blocks.FixedLength(7)(x)) is None


def test_fixed_length_refuses_zero():
    with pytest.raises(ValueError, match="length=0"):
        ka.blocks.FixedLength(0)
