"""Positions of vectors that no table of tokens made, such as those of sound."""

import keras
from keras import ops

from keras_attention import positions
from keras_attention.blocks.token_embedding import check_embedded
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionEmbedding(OwnArguments, keras.layers.Layer):
    """Adds to vectors what tells where they are, as `TokenEmbedding` does to tokens.

    Args:
        position: a part of `keras_attention.positions` that is added, its name or its config.

    Call arguments:
        inputs: (B, T, D).

    Returns (B, T, D), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.PositionEmbedding("sinusoidal")
    x = np.zeros((1, 3, 8), "float32")
    assert np.allclose(layer(x), ka.positions.Sinusoidal().embed(x))
    ```
    """

    own_arguments = ("position",)

    def __init__(self, position, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        if position is None:
            raise ValueError(
                "PositionEmbedding(position=None) adds nothing: give it a position that is added, "
                "such as 'sinusoidal', or leave the layer out."
            )
        self.position = check_embedded(positions.get(position, dtype=self.dtype_policy))

    def build(self, input_shape):
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build(input_shape)

    def call(self, inputs):
        return self.position.embed(ops.convert_to_tensor(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs):
        if isinstance(self.position, keras.layers.Layer):  # one with a table may find it too long
            self.position.compute_output_spec(inputs)
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
