"""Rows of one length: longer ones are cut, shorter ones filled up with what counts."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


@pytest.mark.parametrize("length", [3, 5, 11])
@pytest.mark.parametrize("axes", [2, 3])
def test_cuts_and_fills_up(length, axes):
    x = X if axes == 3 else X[:, :, 0]
    found = np.asarray(ka.blocks.FixedLength(length)(x))
    expected = np.zeros((2, length, *x.shape[2:]))
    expected[:, : min(5, length)] = x[:, :length]
    np.testing.assert_array_equal(found, expected.astype("float32"))


def test_all_of_it_counts():
    x = ka.blocks.LengthMask()(X, np.array([5, 2]))
    assert keras_internals.get_mask(ka.blocks.FixedLength(7)(x)) is None


def test_refuses_no_length():
    with pytest.raises(ValueError, match="length=0"):
        ka.blocks.FixedLength(0)
