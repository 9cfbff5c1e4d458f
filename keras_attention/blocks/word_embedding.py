"""Embeddings of words from their characters, and their combination with word embeddings."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.blocks.token_embedding import find_padding
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, merges_tokens, part_tokens


@keras.saving.register_keras_serializable(package="keras_attention")
class CharacterEmbedding(OwnArguments, IntegerInputs, ProjectionOwner):
    """Embeds words by their spelling, for words that a vocabulary lacks (Kim et al., 2016, 2.2).

    The layer convolves the embeddings of the characters and takes the maximum over each word.

    Args:
        vocabulary_size: int, number of character ids. Id 0 is padding.
        hidden_dim: int, the size of the character embeddings.
        filters: int, number of filters of each width.
        widths: tuple of ints, the widths of the filters in characters.
        dropout: float, the dropout rate for character embeddings.

    Call arguments:
        inputs: int character ids (B, T, C), each word padded with 0 to C characters.

    Returns (B, T, len(widths) · filters), with a mask of the words that have characters.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.CharacterEmbedding(60, 16, filters=8, widths=(2, 3, 4))
    words = np.random.randint(1, 60, size=(2, 5, 12))
    assert layer(words).shape == (2, 5, 24)
    ```
    """

    own_arguments = ("vocabulary_size", "hidden_dim", "filters", "widths", "dropout")
    integer_inputs = {"inputs"}

    def __init__(
        self, vocabulary_size, hidden_dim=32, filters=64, widths=(2, 3, 4), dropout=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.filters, self.widths, self.dropout = filters, tuple(widths), dropout
        self._table = keras.layers.Embedding(
            vocabulary_size, hidden_dim, **self._projection_arguments("table")
        )
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        settings = dict(padding="same", data_format="channels_last", activation="relu")
        self._convolutions = [
            keras.layers.Conv1D(
                filters, width, **settings, dtype=self.dtype_policy, name=f"width_{width}"
            )
            for width in self.widths
        ]

    def build(self, input_shape):
        self._table.build(input_shape)
        for convolution in self._convolutions:
            convolution.build((None, input_shape[-1], self.hidden_dim))

    def call(self, inputs, training=None):
        length, size = ops.shape(inputs)[1], ops.shape(inputs)[2]
        characters = ops.reshape(inputs, (-1, size)) if merges_tokens() else inputs
        visible = ops.cast(ops.not_equal(characters, 0), self.compute_dtype)
        visible = ops.expand_dims(visible, axis=-1)
        x = ops.multiply(self._table(characters), visible)  # (B·T, C, E) or (B, T, C, E)
        x = self._dropout_layer(x, training=training)
        # After the ReLU no output is negative, so zeros at padding do not change the maximum.
        features = [ops.multiply(_convolve(each, x), visible) for each in self._convolutions]
        features = ops.concatenate([ops.max(each, axis=-2) for each in features], axis=-1)
        return part_tokens(features, inputs, length, len(self.widths) * self.filters)

    def compute_mask(self, inputs, previous=None):
        return ops.any(ops.not_equal(inputs, 0), axis=-1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], len(self.widths) * self.filters)


def _convolve(convolution, x):
    """Call a `Conv1D` with a ReLU on (B·T, C, E), or on each word of (B, T, C, E)."""
    if len(x.shape) == 3:
        return convolution(x)
    kernel = ops.expand_dims(convolution.kernel, axis=0)
    x = ops.conv(x, kernel, padding="same", data_format="channels_last")
    return ops.relu(ops.add(x, convolution.bias))


@keras.saving.register_keras_serializable(package="keras_attention")
class WordEmbedding(OwnArguments, IntegerInputs, ProjectionOwner):
    """Embeds words by a table and by their characters together (Ma and Hovy, 2016, section 2.3).

    The layer concatenates both embeddings of a word, and projects the result to `hidden_dim`.

    Args:
        tokens: a layer from word ids (B, T) to (B, T, D), such as `TokenEmbedding`.
        characters: a layer from character ids (B, T, C), C for each word, to (B, T, any width),
            such as `CharacterEmbedding`.
        hidden_dim: int, the width of the output.

    Call arguments:
        tokens: int word ids (B, T).
        characters: int character ids (B, T, C).
        positions: int (T,) or (B, T), the positions of the words, passed to the layer `tokens`.
            None is 0, 1, 2, ...

    Returns (B, T, hidden_dim), with a mask that hides the `padding_id` of the layer `tokens`, or 0
    if that layer has none.

    ```python
    import numpy as np
    import keras_attention as ka

    embed = ka.blocks.WordEmbedding(
        ka.blocks.TokenEmbedding(100, 16), ka.blocks.CharacterEmbedding(60, 8, filters=4), 16
    )
    assert embed(np.ones((2, 5), "int32"), np.ones((2, 5, 9), "int32")).shape == (2, 5, 16)
    ```
    """

    own_arguments = ("tokens", "characters", "hidden_dim")

    def __init__(self, tokens, characters, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.tokens = revive_layer("tokens", tokens)
        self.characters = revive_layer("characters", characters)
        self.hidden_dim = hidden_dim
        self._projection = keras.layers.Dense(
            hidden_dim, **self._projection_arguments("projection")
        )

    def build(self, tokens_shape, characters_shape):
        width = 0
        for layer, shape in ((self.tokens, tokens_shape), (self.characters, characters_shape)):
            if not layer.built:
                layer.build(shape)
            width += layer.compute_output_shape(shape)[-1]
        self._projection.build((None, width))

    def call(self, tokens, characters, positions=None, training=None):
        arguments = {} if positions is None else {"positions": positions}
        x = self.tokens(tokens, training=training, **arguments)
        spelling = self.characters(characters, training=training)
        x = ops.concatenate([x, spelling], axis=2)
        length = ops.shape(x)[1]
        return part_tokens(self._projection(merge_tokens(x)), x, length, self.hidden_dim)

    def compute_mask(self, tokens, previous=None):
        return masks.token_mask(tokens, find_padding([self.tokens]).masked)

    def compute_output_shape(self, tokens_shape, characters_shape):
        return (*tokens_shape, self.hidden_dim)
