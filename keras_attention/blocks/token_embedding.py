"""Embeddings of tokens and of segments, and dropout of whole tokens."""

import math

import keras
import numpy as np
from keras import ops

from keras_attention import masks, positions
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.core import checks, scope
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, prepend_batch
from keras_attention.core.sharing import serialize_shared
from keras_attention.core.token_layout import pin_tokens
from keras_attention.core.weight_axes import name_axes
from keras_attention.positions.indices import to_numpy_or_none

PADDING = (None, "none", "right")  # what may be promised of the ids


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenEmbedding(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Looks tokens up in a table and adds their positions (Vaswani et al., 2017, section 3.4).

    Called with `reverse=True` it goes back: the logit of each token is the inner product of a
    vector and the token's row. Input and output of a language model are tied in this way (Press
    and Wolf, 2017).

    Args:
        vocabulary_size: int, rows of the table.
        hidden_dim: int, D.
        position: a part of `keras_attention.positions` that is added to the tokens, its name, its
            config, or None.
        scale: bool, whether the vectors are multiplied by √D before the position is added.
        dropout: float, applied to the sum.
        embeddings_initializer: a Keras initializer.
        logit_bias: bool, whether each token's logit has a learned bias (BERT).
        logit_scale: float, what logits are multiplied by, before the bias (T5: D^-½).
        logit_soft_cap: float above 0, or None. Logits become `cap · tanh(logits / cap)`, after the
            bias, so that none is larger (Gemma 2, 2024, section 2).
        table: the `table` of another `TokenEmbedding`, to share it; None makes one. A loaded model
            has one table; `keras.models.clone_model` copies it into each layer.
        padding_id: int, the id that is no token, and is masked; None where every id is a token.
        padding: a promise about the ids of every call: `"none"`, that none is `padding_id`, so that
            there is no mask; `"right"`, that it comes after the tokens of a row alone, which
            changes nothing here (attention with the same promise takes lengths in place of the
            mask); or None for no promise. A call outside of a compiled function checks its ids; in
            `fit` and `predict` a promise that is broken gives wrong numbers without a word.

    Call arguments:
        inputs: int token ids (B, T); with `reverse=True` vectors (B, T, D).
        positions: int (T,) or (B, T), where the tokens are. Default: 0, 1, 2, ...
        reverse: bool, whether to go from vectors to logits.

    Returns (B, T, D), with the mask `inputs != padding_id`, if any id is one and may come; or
    logits (B, T, vocabulary_size), float32, with the mask of the inputs.

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
        self.supports_masking = True
        self.logit_soft_cap = logit_soft_cap
        if logit_soft_cap is not None:
            checks.check_number(self, "logit_soft_cap", above=0)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.padding_id = checks.check_padding_id(type(self).__name__, padding_id)
        if isinstance(vocabulary_size, int) and (padding_id or 0) >= vocabulary_size:
            raise ValueError(
                f"{type(self).__name__}: padding_id={padding_id} is no id of a vocabulary of "
                f"{vocabulary_size}; give one from 0 to {vocabulary_size - 1}, or None."
            )
        self.padding = padding
        checks.check_choice(self, "padding", PADDING)
        if padding == "right" and padding_id is None:
            raise ValueError(
                f"{type(self).__name__}: padding='right' with padding_id=None, where no id is "
                "padding. Give padding='none', or leave padding out."
            )
        self.position = check_embedded(positions.get(position, dtype=self.dtype_policy))
        self.scale, self.dropout = scale, dropout
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.logit_bias, self.logit_scale = logit_bias, logit_scale
        self._table = self._make_table() if table is None else self._shared_table(table)
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _make_table(self):
        return keras.layers.Embedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=self.embeddings_initializer,
            dtype=self.dtype_policy,
            name="table",
        )

    def _shared_table(self, table):
        table = revive_layer("table", table)
        is_table = isinstance(table, keras.layers.Embedding)
        size = (table.input_dim, table.output_dim) if is_table else (None, None)
        if size != (self.vocabulary_size, self.hidden_dim):
            raise ValueError(
                f"table has (rows, columns) {size}, and {self.name} needs (vocabulary_size, "
                f"hidden_dim) {(self.vocabulary_size, self.hidden_dim)}. A shared table has "
                "the size of both."
            )
        return table

    @property
    def table(self):
        """The `keras.layers.Embedding` with a row for each token, to be shared."""
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
        """`cap(logit_scale · x Eᵀ + bias)`: (B, T, D) to (B, T, vocabulary_size), float32."""
        shape = prepend_batch(x, ops.shape(x)[1], self.vocabulary_size)
        x = merge_tokens(x)
        if self.logit_scale != 1:
            x = ops.multiply(x, ops.cast(self.logit_scale, x.dtype))
        logits = ops.cast(inner_products(x, self._rows()), "float32")
        if self.logit_bias:
            logits = ops.add(logits, ops.cast(self.bias, "float32"))
        if self.logit_soft_cap is not None:
            logits = self.logit_soft_cap * ops.tanh(logits / self.logit_soft_cap)
        return pin_tokens(ops.reshape(logits, shape), "vocabulary")

    def _rows(self):
        """The table (V, D) as floats; of a quantized one every row is looked up."""
        if self._table.quantization_mode is None:
            return self._table.embeddings
        return self._table(ops.arange(self.vocabulary_size, dtype="int32"))

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
        if isinstance(self.position, keras.layers.Layer):  # one with a table may find it too long
            self.position.compute_output_spec(embedded, positions)
        return embedded

    def get_config(self):
        return {**super().get_config(), "table": serialize_shared(self._table)}


def check_padding(owner, ids, padding_id, padding):
    """Refuses ids that break the promise `padding`, where their values are known.

    Args:
        owner: str, what the message calls the layer. ids: int (B, T). padding_id: int, or None.
        padding: `"none"`, no id is `padding_id`; `"right"`, it comes after the tokens of a row
            alone; None, anything.
    """
    values = None if None in (padding, padding_id) else to_numpy_or_none(ids)
    if values is None or values.ndim != 2:
        return
    tokens = values != padding_id
    wrong = ~tokens if padding == "none" else ~tokens[:, :-1] & tokens[:, 1:]
    rows = np.flatnonzero(wrong.any(axis=1))
    if len(rows):
        promised = "has no padding" if padding == "none" else "has padding after its tokens alone"
        raise ValueError(
            f"{owner} was given ids with padding_id={padding_id} in row {rows[0]}, and "
            f"padding={padding!r} promises that a row {promised}. Build the model without the "
            "promise, or give rows that keep it."
        )


def check_embedded(position):
    """`position`, if it is None or one that is added to tokens; an error otherwise."""
    if position is not None and position.roles != {"embed"}:
        raise ValueError(
            f"position={position!r} works inside attention ({', '.join(sorted(position.roles))}) "
            "and cannot be added to tokens. Give it to MultiHeadAttention, or use one that is "
            "added: sinusoidal, learned, scalar."
        )
    return position


def inner_products(x, table):
    """The inner products of vectors (..., D) with all rows of a table (V, D): (..., V).

    A model that decodes asks for one row at a time, and then for all of the table: as `E xᵀ` it is
    read once in order. Everything else, and files of other runtimes, have the plain product.
    """

    if len(x.shape) > 2 and scope.current(scope.Decoding) is None:
        return ops.matmul(x, ops.transpose(table))
    x = ops.reshape(x, (-1, table.shape[1]))

    def product():
        return ops.einsum("md,vd->mv", x, table)

    if scope.current(scope.Decoding) is None or scope.current(scope.Export) is not None:
        return product()
    shape = (-1, table.shape[0])
    return ops.cond(
        ops.equal(ops.shape(x)[0], 1),
        lambda: ops.reshape(ops.matmul(table, ops.transpose(x)), shape),
        lambda: ops.reshape(product(), shape),
    )


@keras.saving.register_keras_serializable(package="keras_attention")
class SegmentEmbedding(OwnArguments, IntegerInputs, ProjectionOwner):
    """Adds to each token a learned vector for its segment (Devlin et al., 2019, figure 2).

    Args:
        num_segments: int, how many kinds of segments there are, such as 2 for pairs of sentences.
        embeddings_initializer: a Keras initializer.

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

    def compute_output_spec(self, inputs, segment_ids):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenDropout(OwnArguments, keras.layers.Layer):
    """Replaces token ids by the unknown id, so that a model learns to cope with unknown words.

    (Iyyer et al., 2015, section 3.2, *word dropout*.) Padding stays padding.

    Args:
        rate: float, the share of tokens replaced in training.
        unknown_id: int, what replaces them.
        seed: int.
        padding_id: int, the id that is no token, or None where every id is one.

    Call arguments:
        inputs: int token ids (B, T). Returns the same shape and dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    ids = np.array([[5, 7, 9, 0]])
    assert np.array_equal(ka.blocks.TokenDropout(0.99)(ids), ids)  # nothing happens at inference
    assert np.array_equal(ka.blocks.TokenDropout(1.0)(ids, training=True), [[1, 1, 1, 0]])
    ```
    """

    own_arguments = ("rate", "unknown_id", "seed", "padding_id")

    def __init__(self, rate, unknown_id=1, seed=None, padding_id=0, **kwargs):
        if not 0 <= rate <= 1:
            raise ValueError(f"rate={rate}: expected the share of tokens to drop, from 0 to 1.")
        kwargs.setdefault("dtype", "int32")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate, self.unknown_id, self.seed = rate, unknown_id, seed
        self.padding_id = checks.check_padding_id(type(self).__name__, padding_id)
        self._generator = keras.random.SeedGenerator(seed) if rate else None

    def call(self, inputs, training=None):
        if not training or not self.rate:
            return inputs
        drawn = keras.random.uniform(ops.shape(inputs), dtype="float32", seed=self._generator)
        dropped, tokens = ops.less(drawn, self.rate), masks.token_mask(inputs, self.padding_id)
        dropped = dropped if tokens is None else ops.logical_and(dropped, tokens)
        return ops.where(dropped, ops.cast(self.unknown_id, inputs.dtype), inputs)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
