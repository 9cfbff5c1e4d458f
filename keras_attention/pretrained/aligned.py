"""Float32 copies of a file's arrays, of which a backend makes tensors without a second copy."""

import math
import mmap

import keras
import numpy as np

ALIGNMENT = 64  # bytes: TensorFlow takes memory as it is that begins at a multiple of them
COLUMNS = (
    16  # float32 in so many bytes: a turn that writes whole lines of memory takes half as long
)
SMALL = 4096  # bytes: of less a second copy costs nothing
# Of so many bytes Linux gives all pages at once, in three fifths of the time of one at a time. From
# 4 MB on NumPy asks for huge pages, for which the kernel first puts a memory in pieces in order:
# that took 1.8 of the 3.3 seconds of a load of 1.3 GB.
LARGE = 1 << 19


def copy_aligned(array):
    """Return a float32 copy in C order, whose memory begins at a multiple of `ALIGNMENT`.

    Args:
        array: of any dtype and layout, such as the transposed map of a file.

    ```python
    import numpy as np
    from keras_attention.pretrained.aligned import copy_aligned

    turned = np.arange(6, dtype="float16").reshape(2, 3).T
    copy = copy_aligned(turned)
    assert copy.flags.c_contiguous and copy.dtype == "float32" and copy.ctypes.data % 64 == 0
    assert np.array_equal(copy, turned)
    ```
    """
    size = 4 * math.prod(array.shape)
    memory = _get_memory(size + ALIGNMENT)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + size].view("float32").reshape(array.shape)
    if array.ndim == 2 and array.strides[0] < array.strides[1]:
        for i in range(0, array.shape[1], COLUMNS):
            copy[:, i : i + COLUMNS] = array[:, i : i + COLUMNS].astype("float32", copy=False)
    else:
        copy[...] = array
    return copy


def _get_memory(size):
    """Bytes to write to, whatever they hold."""
    if size < LARGE or not hasattr(mmap, "MAP_POPULATE"):
        return np.empty(size, "uint8")
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    return np.frombuffer(mmap.mmap(-1, size, flags=kind), "uint8")


def as_tensor(copy):
    """Return the tensor of an array of `copy_aligned`; TensorFlow's is of the same memory."""
    if keras.backend.backend() != "tensorflow" or copy.nbytes < SMALL:
        return keras.ops.convert_to_tensor(copy)
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(copy.__dlpack__())
