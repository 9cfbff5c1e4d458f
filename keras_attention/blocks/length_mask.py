"""Lengths of the rows of a batch as the implicit mask that layers hand on."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.integer_inputs import IntegerInputs


def mask_lengths(lengths, places):
    """Which of so many places lie before the end of each row: int (B,) -> bool (B, places)."""
    place = ops.expand_dims(ops.arange(places, dtype="int32"), axis=0)
    return ops.less(place, ops.expand_dims(ops.cast(lengths, "int32"), axis=1))


@keras.saving.register_keras_serializable(package="keras_attention")
class LengthMask(IntegerInputs, keras.layers.Layer):
    """Marks what lies after the end of each row as padding, for inputs that have no padding id.

    Call arguments:
        inputs: float (B, T) or (B, T, ...), such as samples or features.
        lengths: int (B,), how many places of each row are not padding.

    Returns the inputs, with 0 in place of padding, and an implicit mask, bool (B, T).

    ```python
    import numpy as np
    import keras_attention as ka

    x = ka.blocks.LengthMask()(np.ones((2, 3)), np.array([3, 1]))
    assert np.array_equal(x, [[1, 1, 1], [1, 0, 0]])
    ```
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, lengths):
        kept = mask_lengths(lengths, ops.shape(inputs)[1])
        shape = (*ops.shape(kept), *(1 for _ in inputs.shape[2:]))
        x = ops.where(ops.reshape(kept, shape), inputs, ops.cast(0, inputs.dtype))
        keras_internals.set_mask(x, kept)
        return x

    def compute_mask(self, inputs, previous=None):
        return None  # the output carries it

    def compute_output_shape(self, inputs_shape, lengths_shape):
        return inputs_shape

    def compute_output_spec(self, inputs, lengths):
        return keras.KerasTensor(inputs.shape, inputs.dtype)
