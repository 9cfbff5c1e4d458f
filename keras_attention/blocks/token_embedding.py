"""Embeddings of tokens and of segments."""

import math

import keras
import numpy as np
from keras import ops

from keras_attention import masks, positions
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.dropout import TokenDropout
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.core import checks, scope
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.onednn import tensorflow_lacks_onednn
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, prepend_batch
from keras_attention.core.sharing import serialize_shared
from keras_attention.core.special_ids import Padding
from keras_attention.core.token_layout import pin_tokens
from keras_attention.core.weight_axes import name_axes
from keras_attention.positions.indices import to_numpy_or_none

PADDING = (None, "none", "right")


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenEmbedding(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Looks tokens up in a table and adds their positions (Vaswani et al., 2017, section 3.4).

    With `reverse=True` it computes logits instead: the inner products of each vector with all rows
    of the table. This ties input and output of a language model (Press and Wolf, 2017).

    Args:
        vocabulary_size: int, number of token ids, the rows of the table.
        hidden_dim: int D, the size of a vector.
        position: an encoding of `keras_attention.positions` that is added to the tokens, or its
            name or config. None adds no position.
        scale: bool, whether the vectors are multiplied by √D before the position is added.
        dropout: float, the dropout rate for the sum.
        embeddings_initializer: a Keras initializer for the table.
        logit_bias: bool, whether logits have a learned bias for each token (BERT).
        logit_scale: float, multiplies logits before the bias is added (T5: D^-½).
        logit_soft_cap: positive float. Logits become `cap · tanh(logits / cap)`, after the bias
            (Gemma 2, 2024, section 2). None leaves them unchanged.
        table: the `table` of another `TokenEmbedding`, to share its weights. None makes a new
            table. A table stays shared when a model is saved and loaded, but not when
            `keras.models.clone_model` copies the model.
        padding_id: int, the id of padding, which is masked. None if every id is a token.
        padding: a promise about your ids. None promises nothing: padding may be anywhere. With
            `"none"`, `padding_id` never occurs, so there is no mask. With `"right"`, it occurs only
            at the end of a row. Then the mask is the same, and attention on GPUs computes with the
            lengths of the rows, which is faster. Ids that break the promise raise an error, but not
            in compiled functions such as `fit` and `predict`. There the results are wrong.

    Call arguments:
        inputs: int token ids (B, T), or with `reverse=True` vectors (B, T, D).
        positions: int (T,) or (B, T), the positions of the tokens. None is 0, 1, 2, ...
        reverse: bool, whether to compute logits.

    Returns (B, T, D), with the mask `inputs != padding_id`. There is no mask with `padding_id=None`
    or `padding="none"`. With `reverse=True`, float32 logits (B, T, vocabulary_size), with the mask
    of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    embed = ka.blocks.TokenEmbedding(100, 16, position="sinusoidal", scale=True)
    assert embed(np.array([[5, 7, 0]])).shape == (1, 3, 16)
    assert np.array_equal(embed.compute_mask(np.array([[5, 7, 0]])), [[True, True, False]])
    assert embed(np.ones((1, 3, 16), "float32"), reverse=True).shape == (1, 3, 100)
    ```
    """

    weight_axes = {"bias": ("vocabulary",)}
    own_arguments = (
        *("vocabulary_size", "hidden_dim", "position", "scale", "dropout"),
        *("embeddings_initializer", "logit_bias", "logit_scale", "padding_id", "logit_soft_cap"),
        "padding",
    )

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
        padding_id=0,
        logit_soft_cap=None,
        padding=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.logit_soft_cap = logit_soft_cap
        checks.check_number(self, "logit_soft_cap", above=0, optional=True)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.padding_id = checks.check_padding_id(type(self).__name__, padding_id)
        if isinstance(vocabulary_size, int) and (padding_id or 0) >= vocabulary_size:
            raise ValueError(
                f"TokenEmbedding(padding_id={padding_id}) with vocabulary_size={vocabulary_size}: "
                f"expected an id from 0 to {vocabulary_size - 1}, or None."
            )
        self.padding = padding
        checks.check_choice(self, "padding", PADDING)
        if padding == "right" and padding_id is None:
            raise ValueError(
                "TokenEmbedding(padding='right', padding_id=None): without a padding id there is "
                "no padding. Give padding='none', or leave padding out."
            )
        self.position = check_embedded(positions.get(position, dtype=self.dtype_policy))
        self.scale, self.dropout = scale, dropout
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.logit_bias, self.logit_scale = logit_bias, logit_scale
        if table is None:
            self._table = keras.layers.Embedding(
                vocabulary_size,
                hidden_dim,
                embeddings_initializer=self.embeddings_initializer,
                dtype=self.dtype_policy,
                name="table",
            )
        else:
            self._table = self._check_table(table)
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _check_table(self, table):
        table = revive_layer("table", table)
        is_table = isinstance(table, keras.layers.Embedding)
        size = (table.input_dim, table.output_dim) if is_table else (None, None)
        if size != (self.vocabulary_size, self.hidden_dim):
            raise ValueError(
                f"table has (rows, columns) {size}, but {self.name} needs (vocabulary_size, "
                f"hidden_dim) {(self.vocabulary_size, self.hidden_dim)}. Give both embeddings the "
                "same sizes."
            )
        return table

    @property
    def table(self):
        """Return the `keras.layers.Embedding` of the tokens, to share it with another layer."""
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

    def get_integer_inputs(self, arguments):
        names = super().get_integer_inputs(arguments)
        return names if arguments.get("reverse") else names | {"inputs"}

    def call(self, inputs, positions=None, reverse=False, training=None):
        if reverse:
            return self._logits(inputs)
        if self.padding is not None and scope.current(scope.Decoding) is None:
            check_padding(self.name, inputs, self.padding_id, self.padding)
        x = self._table(inputs)
        if self.scale:
            x = ops.multiply(x, ops.cast(math.sqrt(self.hidden_dim), x.dtype))
        if self.position is not None:
            x = self.position.embed(x, positions)
        return self._dropout_layer(pin_tokens(x), training=training)

    def _logits(self, x):
        """Compute the logits, float32 (B, T, V), of vectors x (B, T, D).

        The logits are `cap(logit_scale · x Eᵀ + bias)`, where E is the table (V, D).
        """
        shape = prepend_batch(x, ops.shape(x)[1], self.vocabulary_size)
        x = merge_tokens(x)
        if self.logit_scale != 1:
            x = ops.multiply(x, ops.cast(self.logit_scale, x.dtype))
        table = self._table.embeddings
        if self._table.quantization_mode is not None:  # only a lookup returns floats then
            table = self._table(ops.arange(self.vocabulary_size, dtype="int32"))
        logits = ops.cast(inner_products(x, table), "float32")
        if self.logit_bias:
            logits = ops.add(logits, ops.cast(self.bias, "float32"))
        if self.logit_soft_cap is not None:
            logits = self.logit_soft_cap * ops.tanh(logits / self.logit_soft_cap)
        return pin_tokens(ops.reshape(logits, shape), "vocabulary")

    def compute_mask(self, inputs, previous=None):
        if len(inputs.shape) > 2:
            return previous
        return None if self.padding == "none" else masks.token_mask(inputs, self.padding_id)

    def compute_output_shape(self, input_shape, reverse=False):
        if reverse:
            return (*input_shape[:-1], self.vocabulary_size)
        return (*input_shape, self.hidden_dim)

    def compute_output_spec(self, inputs, positions=None, reverse=False, training=None):
        if reverse:
            return keras.KerasTensor(self.compute_output_shape(inputs.shape, True), "float32")
        embedded = keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)
        if isinstance(self.position, keras.layers.Layer):  # raises if a table is too short
            self.position.compute_output_spec(embedded, positions)
        return embedded

    def get_config(self):
        return {**super().get_config(), "table": serialize_shared(self._table)}


def check_padding(name, ids, padding_id, padding):
    """Raise an error if ids (B, T) violate the `padding` of a `TokenEmbedding`.

    Traced ids have no values, so they are not checked. `name` is the name of the layer, and
    `padding_id` and `padding` are the settings of the layer.
    """
    values = None if None in (padding, padding_id) else to_numpy_or_none(ids)
    if values is None or values.ndim != 2:
        return
    tokens = values != padding_id
    wrong = ~tokens if padding == "none" else ~tokens[:, :-1] & tokens[:, 1:]
    rows = np.flatnonzero(wrong.any(axis=1))
    if len(rows):
        expected = "no padding" if padding == "none" else "padding only after the tokens"
        raise ValueError(
            f"{name} got ids with padding_id={padding_id} in row {rows[0]}, but has "
            f"padding={padding!r}: expected {expected}. Build the model with padding=None, or "
            "change the rows."
        )


def check_embedded(position):
    """Return a position encoding, or raise a ValueError if it cannot be added to embeddings.

    Encodings that rotate queries and keys or bias scores work inside attention. None is returned
    unchanged.
    """
    if position is not None and position.roles != {"embed"}:
        raise ValueError(
            f"position={position!r} works inside attention ({', '.join(sorted(position.roles))}) "
            "and cannot be added to tokens. Give it to MultiHeadAttention, or use one that is "
            "added: sinusoidal, learned, scalar."
        )
    return position


def inner_products(x, table):
    """Return the inner products (..., V) of vectors (..., D) with all rows of a table (V, D).

    Decoding often has only one vector x. The product is then `E xᵀ` for the table E, which reads
    the table in memory order. TensorFlow without oneDNN needs up to nine times as long for `x Eᵀ`
    with a few vectors as for `E xᵀ`, so it computes `E xᵀ` for any number of vectors.
    """
    if len(x.shape) > 2 and scope.current(scope.Decoding) is None:
        return ops.matmul(x, ops.transpose(table))
    x = ops.reshape(x, (-1, table.shape[1]))

    def table_first():
        return ops.reshape(ops.transpose(ops.matmul(table, ops.transpose(x))), (-1, table.shape[0]))

    def table_last():
        return ops.einsum("md,vd->mv", x, table)

    if scope.current(scope.Decoding) is None or scope.current(scope.Export) is not None:
        return table_last()
    if tensorflow_lacks_onednn():
        return table_first()
    return ops.cond(ops.equal(ops.shape(x)[0], 1), table_first, table_last)


@keras.saving.register_keras_serializable(package="keras_attention")
class SegmentEmbedding(OwnArguments, IntegerInputs, ProjectionOwner):
    """Adds the learned vector of a token's segment to each token (Devlin et al., 2019, figure 2).

    Args:
        num_segments: int, number of segment types, such as 2 for pairs of sentences.
        embeddings_initializer: a Keras initializer for the segment vectors.

    Call arguments:
        inputs: (B, T, D).
        segment_ids: int (B, T), from 0 to num_segments - 1.

    Returns (B, T, D), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.SegmentEmbedding(2)
    x, segments = np.zeros((1, 4, 8), "float32"), np.array([[0, 0, 1, 1]])
    y = layer(x, segments)
    assert np.array_equal(y[:, 0], y[:, 1]) and not np.array_equal(y[:, 1], y[:, 2])
    ```
    """

    own_arguments = ("num_segments", "embeddings_initializer")

    def __init__(self, num_segments, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.num_segments = num_segments
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        checks.check_whole_numbers(self, "num_segments")

    def build(self, inputs_shape, segment_ids_shape):
        self._table = keras.layers.Embedding(
            self.num_segments,
            inputs_shape[-1],
            embeddings_initializer=self.embeddings_initializer,
            **self._projection_arguments("table"),
        )
        name_axes(self._table, embeddings=("rows", "embed"))
        self._table.build(segment_ids_shape)

    def call(self, inputs, segment_ids):
        return ops.add(inputs, self._table(segment_ids))

    def compute_output_shape(self, inputs_shape, segment_ids_shape):
        return inputs_shape


def find_padding(layers):
    """Return the padding id of the first `TokenEmbedding` in a list of layers, as a `Padding`.

    A `TokenDropout` before the embedding has the same id, so its id is used. The id is 0 if the
    list has neither.
    """
    for layer in layers:
        if isinstance(layer, TokenEmbedding):
            return Padding(layer.padding_id, layer.padding != "none")
        if isinstance(layer, TokenDropout):
            return Padding(layer.padding_id)
    return Padding()
