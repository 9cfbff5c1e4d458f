"""Memory-aligned float32 copies of arrays, which TensorFlow can use without copying them again."""

import math
import mmap
import sys

import keras
import numpy as np

ALIGNMENT = 64  # bytes: TensorFlow uses memory in place if it starts at a multiple of this
COLUMNS = 16  # columns transposed at once: copying whole cache lines takes half the time
SMALL = 4096  # bytes: a second copy of a smaller array costs nothing
# At this size and above, memory is allocated by mmap with MAP_POPULATE, which takes 60 % of NumPy's
# time. NumPy requests huge pages for arrays of 4 MB and more, and Linux then compacts memory first.
# That took 1.8 of the 3.3 seconds of loading 1.3 GB.
LARGE = 1 << 19


def copy_aligned(array):
    """Return a float32 copy of an array in C order, whose address is a multiple of 64 bytes.

    Args:
        array: array of any dtype and memory layout, such as the transpose of a memory map.
    """
    size = 4 * math.prod(array.shape)
    if size < LARGE or sys.platform != "linux":
        memory = np.empty(size + ALIGNMENT, "uint8")
    else:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        memory = np.frombuffer(mmap.mmap(-1, size + ALIGNMENT, flags=flags), "uint8")
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + size].view("float32").reshape(array.shape)
    if array.ndim == 2 and array.strides[0] < array.strides[1]:
        for i in range(0, array.shape[1], COLUMNS):
            copy[:, i : i + COLUMNS] = array[:, i : i + COLUMNS].astype("float32", copy=False)
    else:
        copy[...] = array
    return copy


def as_tensor(copy):
    """Return the array `copy`, a result of `copy_aligned`, as a tensor of the backend.

    On TensorFlow the tensor shares the memory of the array.
    """
    if keras.backend.backend() != "tensorflow" or copy.nbytes < SMALL:
        return keras.ops.convert_to_tensor(copy)
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(copy.__dlpack__())
