"""Aligned float32 copies of a file's arrays, whose memory tensors share."""

import math
import sys

import numpy as np
import pytest
from keras import ops

from keras_attention.pretrained.aligned import as_tensor, copy_aligned

SHAPES = [(), (0, 3), (7,), (1, 40), (40, 1), (37, 53), (3, 5, 7), (600, 300)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_copies_are_equal(shape, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for source in (array, array.T):
        copy = copy_aligned(source)
        assert copy.dtype == "float32" and copy.flags.c_contiguous
        assert not np.shares_memory(copy, source)
        assert copy.size == 0 or copy.ctypes.data % 64 == 0
        np.testing.assert_array_equal(copy, source.astype("float32"))
        np.testing.assert_array_equal(as_tensor(copy), copy)


def test_copies_are_equal_on_other_systems(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    array = np.random.default_rng(0).normal(size=(600, 300)).astype("float16").T
    copy = copy_aligned(array)
    assert copy.ctypes.data % 64 == 0
    np.testing.assert_array_equal(copy, array.astype("float32"))


@pytest.mark.tensorflow
def test_tensorflow_makes_no_second_copy():
    copy = copy_aligned(np.ones((100, 100)))
    tensor = as_tensor(copy)
    copy[3, 5] = 7.0
    assert float(tensor[3, 5]) == 7.0
    variable = ops.convert_to_tensor(tensor, "float32")
    del copy
    assert float(ops.sum(variable)) == math.prod(tensor.shape) + 6
