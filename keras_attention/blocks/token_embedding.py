"""Tokens as vectors, with their positions; and back."""

import math

import keras
from keras import ops

from keras_attention import positions
from keras_attention.blocks.inner import inner_layer
from keras_attention.blocks.inner_products import inner_products
from keras_attention.sharing import config_of_shared


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenEmbedding(keras.layers.Layer):
    """Looks tokens up in a table and says where they are (Vaswani et al., 2017, section 3.4).

    Called with `reverse=True` it goes back: the logit of each token is the inner product of a
    vector and the token's row. Input and output of a language model are tied in this way (Press
    and Wolf, 2017).

    Args:
        vocabulary_size: int, rows of the table; row 0 is padding.
        hidden_dim: int, D.
        position: a part of `keras_attention.positions` that is added to the tokens, its name, its
            config, or None.
        scale: bool, whether the vectors are multiplied by √D before the position is added.
        dropout: float, applied to the sum.
        embeddings_initializer: a Keras initializer.
        logit_bias: bool, whether each token's logit has a learned bias (BERT).
        logit_scale: float, what logits are multiplied by, before the bias (T5: D^-½).
        table: the `table` of another `TokenEmbedding`, to share it; None makes one. A saved model
            comes back with one table; `keras.models.clone_model` copies it into each layer.

    Call arguments:
        inputs: int token ids (B, T); with `reverse=True` vectors (B, T, D).
        positions: int (T,) or (B, T), where the tokens are. Default: 0, 1, 2, ...
        reverse: bool, whether to go from vectors to logits.

    Returns (B, T, D), with the mask `inputs != 0`; or logits (B, T, vocabulary_size), float32, with
    the mask of the inputs.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    embed = ka.blocks.TokenEmbedding(100, 16, position="sinusoidal", scale=True)
    assert embed(np.array([[5, 7, 0]])).shape == (1, 3, 16)
    assert np.array_equal(embed.compute_mask(np.array([[5, 7, 0]])), [[True, True, False]])
    assert embed(np.ones((1, 3, 16), "float32"), reverse=True).shape == (1, 3, 100)
    ```
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        position=None,
        scale=False,
        dropout=0.0,
        embeddings_initializer="uniform",
        logit_bias=False,
        logit_scale=1.0,
        table=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.position = added(positions.get(position, dtype=self.dtype_policy))
        self.scale, self.dropout = scale, dropout
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.logit_bias, self.logit_scale = logit_bias, logit_scale
        self._table = self._make_table() if table is None else self._given(table)
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _make_table(self):
        return keras.layers.Embedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=self.embeddings_initializer,
            dtype=self.dtype_policy,
            name="table",
        )

    def _given(self, table):
        table = inner_layer("table", table)
        size = getattr(table, "input_dim", None), getattr(table, "output_dim", None)
        if size != (self.vocabulary_size, self.hidden_dim):
            raise ValueError(
                f"table has (rows, columns) {size}, and {self.name} needs (vocabulary_size, "
                f"hidden_dim) {(self.vocabulary_size, self.hidden_dim)}. Who shares a table has "
                "its size."
            )
        return table

    @property
    def table(self):
        """The `keras.layers.Embedding` with a row for each token, for others to share."""
        return self._table

    def build(self, input_shape):
        if not self._table.built:
            self._table.build(input_shape)
        if self.logit_bias:
            self.bias = self.add_weight(
                shape=(self.vocabulary_size,), initializer="zeros", name="bias"
            )
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build((*input_shape[:2], self.hidden_dim))

    def call(self, inputs, positions=None, reverse=False, training=None):
        if reverse:
            return self._logits(inputs)
        x = self._table(inputs)
        if self.scale:
            x = ops.multiply(x, ops.cast(math.sqrt(self.hidden_dim), x.dtype))
        if self.position is not None:
            x = self.position.embed(x, positions)
        return self._dropout_layer(x, training=training)

    def _logits(self, x):
        """`logit_scale · x Eᵀ + bias`: (B, T, D) to (B, T, vocabulary_size), float32."""
        length = ops.shape(x)[1]
        x = ops.reshape(x, (-1, self.hidden_dim))
        if self.logit_scale != 1:
            x = ops.multiply(x, ops.cast(self.logit_scale, x.dtype))
        logits = ops.cast(inner_products(x, self._table.embeddings), "float32")
        if self.logit_bias:
            logits = ops.add(logits, ops.cast(self.bias, "float32"))
        return ops.reshape(logits, (-1, length, self.vocabulary_size))

    def compute_mask(self, inputs, previous=None):
        return previous if len(inputs.shape) > 2 else ops.not_equal(inputs, 0)

    def compute_output_shape(self, input_shape, reverse=False):
        if reverse:
            return (*input_shape[:-1], self.vocabulary_size)
        return (*input_shape, self.hidden_dim)

    def compute_output_spec(self, inputs, positions=None, reverse=False, training=None):
        if reverse:
            return keras.KerasTensor(self.compute_output_shape(inputs.shape, True), "float32")
        embedded = keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)
        if isinstance(self.position, keras.layers.Layer):  # one with a table may find it too long
            self.position.compute_output_spec(embedded, positions)
        return embedded

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "position": keras.saving.serialize_keras_object(self.position),
            "scale": self.scale,
            "dropout": self.dropout,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "logit_bias": self.logit_bias,
            "logit_scale": self.logit_scale,
            "table": config_of_shared(self._table),
        }


def added(position):
    """`position`, if it is one that is added to tokens or None; an error that says so if not."""
    if position is not None and position.roles != {"embed"}:
        raise ValueError(
            f"position={position!r} works inside attention ({', '.join(sorted(position.roles))}) "
            "and cannot be added to tokens. Give it to MultiHeadAttention, or use one that is "
            "added: sinusoidal, learned, scalar."
        )
    return position
