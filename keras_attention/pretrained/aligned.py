"""Float32 copies of a file's arrays, of which a backend makes tensors without a second copy."""

import math

import keras
import numpy as np

ALIGNMENT = 64  # bytes: TensorFlow takes memory as it is that begins at a multiple of them
COLUMNS = (
    16  # float32 in so many bytes: a turn that writes whole lines of memory takes half as long
)
SMALL = 4096  # bytes: of less a second copy costs nothing


def copy_aligned(array):
    """A float32 copy in C order, whose memory begins at a multiple of `ALIGNMENT`.

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
    memory = np.empty(size + ALIGNMENT, "uint8")
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + size].view("float32").reshape(array.shape)
    if array.ndim == 2 and array.strides[0] < array.strides[1]:
        for i in range(0, array.shape[1], COLUMNS):
            copy[:, i : i + COLUMNS] = array[:, i : i + COLUMNS].astype("float32", copy=False)
    else:
        copy[...] = array
    return copy


def as_tensor(copy):
    """The tensor of an array of `copy_aligned`; TensorFlow's is of the same memory."""
    if keras.backend.backend() != "tensorflow" or copy.nbytes < SMALL:
        return keras.ops.convert_to_tensor(copy)
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(copy.__dlpack__())
