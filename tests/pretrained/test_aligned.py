"""Copies of a file's arrays: the same numbers, in float32, in memory that tensors share."""

import math
import mmap

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
    for given in (array, array.T):
        copy = copy_aligned(given)
        assert copy.dtype == "float32" and copy.flags.c_contiguous
        assert not np.shares_memory(copy, given)
        assert copy.size == 0 or copy.ctypes.data % 64 == 0
        np.testing.assert_array_equal(copy, given.astype("float32"))
        np.testing.assert_array_equal(as_tensor(copy), copy)


def test_copies_are_equal_where_pages_cannot_be_had_at_once(monkeypatch):
    """As on macOS and Windows."""
    monkeypatch.delattr(mmap, "MAP_POPULATE", raising=False)
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
