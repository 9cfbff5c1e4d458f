"""Positions for vectors without token ids, such as encoded sound, and for packed documents."""

import keras
from keras import ops

from keras_attention import masks, positions
from keras_attention.blocks.token_embedding import check_embedded
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionEmbedding(OwnArguments, keras.layers.Layer):
    """Adds a position encoding to vectors that do not come from a `TokenEmbedding`, such as sound.

    Args:
        position: an encoding of `keras_attention.positions` that is added to embeddings, such as
            `Sinusoidal()`, its name, or its config.

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
                "PositionEmbedding(position=None) adds nothing. Give it a position that is added, "
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
        if isinstance(self.position, keras.layers.Layer):  # raises if a table is too short
            self.position.compute_output_spec(inputs)
        return keras.KerasTensor(inputs.shape, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionsInDocuments(IntegerInputs, keras.layers.Layer):
    """Returns the position of each token in its own document, if rows hold several documents.

    T5 packs several short documents into one row for training (Raffel et al., 2020, section 3.1.3).
    The functions of `keras_attention.models` use this layer if their embedding has `packed=True`.
    It calls `keras_attention.masks.positions_in_segments`.

    Call arguments:
        document_ids: int (B, T), 1, 2, ... for the tokens of the first, second, ... document of a
            row, and 0 for padding.

    Returns int32 (B, T): 0, 1, 2, ... in each document, and 0 for padding.

    ```python
    import numpy as np
    import keras_attention as ka

    positions = ka.blocks.PositionsInDocuments()(np.array([[1, 1, 1, 2, 2, 0]]))
    assert np.array_equal(positions, [[0, 1, 2, 0, 1, 0]])
    ```
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, document_ids):
        return masks.positions_in_segments(document_ids)

    def compute_output_spec(self, document_ids):
        return keras.KerasTensor(document_ids.shape, "int32")
