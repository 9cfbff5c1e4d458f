"""Lengths of the rows of a batch: `LengthMask` masks padding, `FixedLength` cuts or pads rows."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments


def mask_lengths(lengths, size):
    """Return the padding mask of rows with these lengths: bool (B, size), True = not padding.

    `lengths` is int (B,), and `size` an int, the length of all rows with padding.
    """
    index = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    return ops.less(index, ops.expand_dims(ops.cast(lengths, "int32"), axis=1))


@keras.saving.register_keras_serializable(package="keras_attention")
class LengthMask(IntegerInputs, keras.layers.Layer):
    """Sets padding to zero and masks it, for rows of known length without a padding id.

    Call arguments:
        inputs: float (B, T) or (B, T, ...), such as samples or features.
        lengths: int (B,), the number of positions of each row that are not padding.

    Returns the inputs with zeros at padding, and with an implicit mask, bool (B, T).

    ```python
    import numpy as np
    import keras_attention as ka

    x = ka.blocks.LengthMask()(np.ones((2, 3)), np.array([3, 1]))
    assert np.array_equal(x, [[1, 1, 1], [1, 0, 0]])
    ```
    """

    def call(self, inputs, lengths):
        mask = mask_lengths(lengths, ops.shape(inputs)[1])
        shape = (*ops.shape(mask), *(1 for _ in inputs.shape[2:]))
        x = ops.where(ops.reshape(mask, shape), inputs, ops.cast(0, inputs.dtype))
        keras_internals.set_mask(x, mask)
        return x

    def compute_mask(self, inputs, previous=None):
        return None  # `call` attaches the mask to its output

    def compute_output_shape(self, inputs_shape, lengths_shape):
        return inputs_shape

    def compute_output_spec(self, inputs, lengths):
        return keras.KerasTensor(inputs.shape, inputs.dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class FixedLength(OwnArguments, keras.layers.Layer):
    """Cuts rows at the end, or adds zeros, so that all have one length. No mask hides the zeros.

    Whisper always reads 30 seconds, and also attends to the silence at the end (Radford et al.,
    2022, section 2.2).

    Args:
        length: int, the new length of axis 1.

    Call arguments:
        inputs: (B, T) or (B, T, ...).

    Returns (B, length, ...), without a mask.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FixedLength(4)
    assert np.array_equal(layer(np.ones((1, 2))), [[1, 1, 0, 0]])
    assert layer(np.ones((1, 9, 5))).shape == (1, 4, 5)
    ```
    """

    own_arguments = ("length",)

    def __init__(self, length, **kwargs):
        super().__init__(**kwargs)
        self.length = length
        checks.check_whole_numbers(self, "length")

    def call(self, inputs):
        inputs = ops.convert_to_tensor(inputs)
        shape = (ops.shape(inputs)[0], self.length, *inputs.shape[2:])
        silence = ops.zeros(shape, dtype=inputs.dtype)
        return ops.concatenate([inputs, silence], axis=1)[:, : self.length]

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.length, *input_shape[2:])
