"""Words as vectors made of their characters."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class CharacterEmbedding(keras.layers.Layer):
    """Character convolutions, the maximum over each word (Kim et al., 2016, section 2.2).

    Args:
        vocabulary_size: int, number of character ids; id 0 is padding.
        hidden_dim: int, the size of a character's vector.
        filters: int, the number of filters of each width.
        widths: tuple of ints, how many characters a filter of each kind sees.
        dropout: float, applied to the characters' vectors.

    Call arguments:
        inputs: int character ids (B, T, C), a word's characters padded with 0 to C.

    Returns (B, T, len(widths) · filters), with the mask of words that have a character.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.CharacterEmbedding(60, 16, filters=8, widths=(2, 3, 4))
    words = np.random.randint(1, 60, size=(2, 5, 12))
    assert layer(words).shape == (2, 5, 24)
    ```
    """

    def __init__(
        self, vocabulary_size, hidden_dim=32, filters=64, widths=(2, 3, 4), dropout=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.filters, self.widths, self.dropout = filters, tuple(widths), dropout
        self._table = keras.layers.Embedding(
            vocabulary_size, hidden_dim, dtype=self.dtype_policy, name="table"
        )
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self._convolutions = [
            keras.layers.Conv1D(
                filters,
                width,
                padding="same",
                activation="relu",
                dtype=self.dtype_policy,
                name=f"width_{width}",
            )
            for width in self.widths
        ]

    def build(self, input_shape):
        self._table.build(input_shape)
        for convolution in self._convolutions:
            convolution.build((None, input_shape[-1], self.hidden_dim))

    def call(self, inputs, training=None):
        length, size = ops.shape(inputs)[1], ops.shape(inputs)[2]
        characters = ops.reshape(inputs, (-1, size))  # (B·T, C)
        visible = ops.cast(ops.not_equal(characters, 0), self.compute_dtype)
        visible = ops.expand_dims(visible, axis=2)
        x = ops.multiply(self._table(characters), visible)  # (B·T, C, E)
        x = self._dropout_layer(x, training=training)
        # a filter's output is at least 0, so 0 is what a padded place may say without being heard
        found = [ops.multiply(convolution(x), visible) for convolution in self._convolutions]
        found = ops.concatenate([ops.max(each, axis=1) for each in found], axis=1)
        return ops.reshape(found, (-1, length, len(self.widths) * self.filters))

    def compute_mask(self, inputs, previous=None):
        return ops.any(ops.not_equal(inputs, 0), axis=-1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], len(self.widths) * self.filters)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)

    def get_config(self):
        names = ("vocabulary_size", "hidden_dim", "filters", "widths", "dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
