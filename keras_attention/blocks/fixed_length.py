"""Rows of one length, whatever was given: what is missing is filled up, and counts."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class FixedLength(OwnArguments, keras.layers.Layer):
    """Cuts rows, or fills them up with 0, to one length, all of which counts.

    So Whisper hears 30 seconds, whatever is said in them (Radford et al., 2022, section 2.2):
    silence is no padding there.

    Args:
        length: int.

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
        self.supports_masking = True  # it takes one, and gives none
        self.length = length
        checks.check_whole_numbers(self, "length")

    def call(self, inputs):
        inputs = ops.convert_to_tensor(inputs)
        rest = inputs.shape[2:]
        silence = ops.zeros((ops.shape(inputs)[0], self.length, *rest), dtype=inputs.dtype)
        return ops.concatenate([inputs, silence], axis=1)[:, : self.length]

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.length, *input_shape[2:])
