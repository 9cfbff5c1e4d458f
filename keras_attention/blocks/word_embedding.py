"""Words as vectors made of the word itself and of its characters."""

import keras
from keras import ops

from keras_attention.blocks.inner import inner_layer


@keras.saving.register_keras_serializable(package="keras_attention")
class WordEmbedding(keras.layers.Layer):
    """Joins a word's own vector with its spelling's, and projects (Ma and Hovy, 2016, section 2.3).

    Args:
        tokens: a layer from ids (B, T) to (B, T, D), such as `TokenEmbedding`.
        characters: a layer from ids (B, T, C) to (B, T, F), such as `CharacterEmbedding`.
        hidden_dim: int D, the width of the result.

    Call arguments:
        tokens: int (B, T); characters: int (B, T, C).

    Returns (B, T, D), with the mask `tokens != 0`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    embed = ka.blocks.WordEmbedding(
        ka.blocks.TokenEmbedding(100, 16), ka.blocks.CharacterEmbedding(60, 8, filters=4), 16
    )
    assert embed(np.ones((2, 5), "int32"), np.ones((2, 5, 9), "int32")).shape == (2, 5, 16)
    ```
    """

    def __init__(self, tokens, characters, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.tokens = inner_layer("tokens", tokens)
        self.characters = inner_layer("characters", characters)
        self.hidden_dim = hidden_dim
        self._projection = keras.layers.Dense(
            hidden_dim, dtype=self.dtype_policy, name="projection"
        )

    def build(self, tokens_shape, characters_shape):
        for layer, shape in ((self.tokens, tokens_shape), (self.characters, characters_shape)):
            if not layer.built:
                layer.build(shape)
        self._projection.build((None, self._width(tokens_shape, characters_shape)))

    def _width(self, *shapes):
        layers = (self.tokens, self.characters)
        return sum(
            layer.compute_output_shape(s)[-1] for layer, s in zip(layers, shapes, strict=True)
        )

    def call(self, tokens, characters, training=None):
        x = self.tokens(tokens, training=training)
        spelling = self.characters(characters, training=training)
        shape = ops.shape(x)
        x = ops.concatenate([x, spelling], axis=2)
        x = self._projection(ops.reshape(x, (-1, x.shape[-1])))
        return ops.reshape(x, (-1, shape[1], self.hidden_dim))

    def compute_mask(self, tokens, previous=None):
        return ops.not_equal(tokens, 0)

    def compute_output_shape(self, tokens_shape, characters_shape):
        return (*tokens_shape, self.hidden_dim)

    def compute_output_spec(self, tokens, characters, training=None):
        return keras.KerasTensor((*tokens.shape, self.hidden_dim), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "tokens": keras.saving.serialize_keras_object(self.tokens),
            "characters": keras.saving.serialize_keras_object(self.characters),
            "hidden_dim": self.hidden_dim,
        }
