"""`Biaffine`: scores for pairs of tokens, for dependency parsing."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core import checks, scope, shapes
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, prepend_batch

FLOAT16_LOWEST = -6e4  # the lowest score that float16 can hold


@keras.saving.register_keras_serializable(package="keras_attention")
class Biaffine(OwnArguments, ProjectionOwner):
    """Scores every token as the head of every other token (Dozat and Manning, 2017, section 3.2).

    In a dependency parse, each word depends on another word, its head. Each token x has one vector
    as a dependent, d = ReLU(V x), and one as a head, h = ReLU(U x). The n-th score of dependent i
    and head j, with a learned matrix `W_n` and a concatenation `[d_i, 1]`, is:

        score_n(i, j) = [d_i, 1]ᵀ W_n h_j             if `num_outputs` is None (equation 7)
        score_n(i, j) = [d_i, 1]ᵀ W_n [h_j, 1]        otherwise (equation 8, for every pair)

    Head 0 is the root of the tree, a learned vector. Head j is the token at index j - 1.

    Args:
        hidden_dim: int H, the size of d and h.
        num_outputs: int N, number of scores for each pair, such as one for each grammatical
            relation. None for one score, without a last axis.
        dropout: float, the dropout rate for d and h.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask. Padding gets very
            low scores as a head.

    Returns scores (B, T, T + 1) or (B, T, T + 1, N), with dependents on axis 1 and heads on axis 2.
    Without `num_outputs`, `ka.visualization.record_attention` records their softmax over heads,
    (B, 1, T, T + 1).

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 5, 16)
    assert ka.blocks.Biaffine(8)(x).shape == (2, 5, 6)
    assert ka.blocks.Biaffine(8, num_outputs=3)(x).shape == (2, 5, 6, 3)
    ```
    """

    own_arguments = ("hidden_dim", "num_outputs", "dropout")
    weight_axes = {"root": ("rows", "rows", "embed"), "kernel": ("features", "units", "inner")}

    def __init__(self, hidden_dim, num_outputs=None, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.hidden_dim, self.num_outputs, self.dropout = hidden_dim, num_outputs, dropout
        checks.check_whole_numbers(self, "hidden_dim")
        checks.check_whole_numbers(self, "num_outputs", optional=True)
        self._dependent = self._dense("dependent")
        self._head = self._dense("head")
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _dense(self, name):
        arguments = self._projection_arguments(name)
        return keras.layers.Dense(self.hidden_dim, activation="relu", **arguments)

    def build(self, input_shape):
        width = input_shape[-1]
        self._dependent.build((None, None, width))
        self._head.build((None, None, width))
        self.root = self.add_weight(
            shape=(1, 1, width), initializer=keras.initializers.RandomNormal(stddev=1), name="root"
        )
        self.kernel = self.add_weight(
            shape=(self.num_outputs or 1, self.hidden_dim + 1, self._head_dim),
            initializer=keras.initializers.RandomNormal(stddev=1 / self.hidden_dim),
            name="kernel",
        )

    @property
    def _head_dim(self):
        """Return the size of h, or of [h, 1] if `num_outputs` is given."""
        return self.hidden_dim + (self.num_outputs is not None)

    def call(self, inputs, mask=None, training=None):
        scope.refuse_decoding(f"{self.name} scores whole sentences.")
        length, number = ops.shape(inputs)[1], self.num_outputs or 1
        root = shapes.tile(ops.cast(self.root, inputs.dtype), (ops.shape(inputs)[0], 1, 1))
        dependents = self._dependent(inputs)
        heads = self._head(ops.concatenate([root, inputs], axis=1))
        dependents = self._dropout_layer(dependents, training=training)
        heads = self._dropout_layer(heads, training=training)
        # Two matrix products: d (B·T, H) with all W_n concatenated, and the result (T·N, H) with h.
        # The last row and column of W_n would be multiplied by 1, so they are added instead.
        kernel = ops.transpose(ops.cast(self.kernel, inputs.dtype), (1, 0, 2))
        kernel = ops.reshape(kernel, (self.hidden_dim + 1, number * self._head_dim))
        x = ops.matmul(merge_tokens(dependents), kernel[:-1])
        x = ops.add(x, kernel[-1])
        x = ops.reshape(x, prepend_batch(inputs, length * number, self._head_dim))
        affine = x[:, :, self.hidden_dim :]  # (B, T·N, 1), or empty without `num_outputs`
        x = ops.matmul(x[:, :, : self.hidden_dim], ops.transpose(heads, (0, 2, 1)))
        if self.num_outputs is None:
            x = self._hide_padding(x, mask)  # (B, T, T + 1)
            if scope.wants_weights(self):
                scope.record_weights(self, ops.expand_dims(ops.softmax(x, axis=-1), axis=1))
            return x
        # Keras would turn an addition along axis 1 into a BiasAdd of channels, which LiteRT lacks.
        x = ops.subtract(x, ops.negative(affine))
        x = self._hide_padding(x, mask)  # (B, T·N, T + 1)
        x = ops.reshape(x, prepend_batch(inputs, length, number, length + 1))
        return ops.transpose(x, (0, 1, 3, 2))

    def _hide_padding(self, x, mask):
        if mask is None:
            return x
        # Floats, because tf2onnx does not convert a padding of bool with True.
        visible = ops.pad(ops.cast(mask, x.dtype), ((0, 0), (1, 0)), constant_values=1.0)  # root
        visible = ops.expand_dims(visible, axis=1)  # (B, 1, T + 1)
        constant = max(scope.mask_constant(), FLOAT16_LOWEST)
        return ops.add(ops.multiply(x, visible), ops.multiply(ops.subtract(1.0, visible), constant))

    def compute_output_shape(self, input_shape):
        batch, length, _ = input_shape
        shape = (batch, length, None if length is None else length + 1)
        return shape if self.num_outputs is None else (*shape, self.num_outputs)
