"""Biaffine scores of pairs of tokens: which one is the head of which, and in what relation."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core import scope, shapes
from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, prepend_batch

FLOAT16_LOWEST = -6e4  # of any score: a half holds no less


@keras.saving.register_keras_serializable(package="keras_attention")
class Biaffine(OwnArguments, ProjectionOwner):
    """Scores each token as the head of each other one (Dozat and Manning, 2017, section 3.2).

    A token is two vectors, one as a dependent and one as a head, d = ReLU(V x) and h = ReLU(U x),
    and the score of a pair is the bilinear one of attention with an affine term:

        score_n(i, j) = [d_i; 1]ᵀ W_n h_j             without `num_outputs` (equation 7)
        score_n(i, j) = [d_i; 1]ᵀ W_n [h_j; 1]        with it (equation 8, for every pair)

    In front of the heads stands a learned vector, the root of a tree: head 0 is the root, and head
    j is token j - 1.

    Args:
        hidden_dim: int H, the size of d and h.
        num_outputs: int N, numbers for each pair, such as one for each relation; None for a single
            one, (B, T, T + 1).
        dropout: float, on d and h.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token; filled by Keras from the implicit mask. Padding is no
            head: its scores are very small.

    Returns (B, T, T + 1), or (B, T, T + 1, N); dependents first, then heads. What
    `record_attention` shows of it is the softmax over heads, (B, 1, T, T + 1).

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
        self.hidden_dim = check_whole_number("Biaffine", "hidden_dim", hidden_dim)
        if num_outputs is not None:
            check_whole_number("Biaffine", "num_outputs", num_outputs)
        self.num_outputs, self.dropout = num_outputs, dropout
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
        """The size of a head's vector in the product."""
        return self.hidden_dim + (self.num_outputs is not None)

    def call(self, inputs, mask=None, training=None):
        scope.refuse_decoding(f"{self.name} scores whole sentences.")
        length, number = ops.shape(inputs)[1], self.num_outputs or 1
        root = shapes.tile(ops.cast(self.root, inputs.dtype), (ops.shape(inputs)[0], 1, 1))
        dependents = self._dependent(inputs)
        heads = self._head(ops.concatenate([root, inputs], axis=1))
        dependents = self._dropout_layer(dependents, training=training)
        heads = self._dropout_layer(heads, training=training)
        # Two products of matrices: (B·T, H) with all W_n side by side, then (T·N, H) with h. What
        # the last row and column of W_n multiply is 1: it is added.
        kernel = ops.transpose(ops.cast(self.kernel, inputs.dtype), (1, 0, 2))
        kernel = ops.reshape(kernel, (self.hidden_dim + 1, number * self._head_dim))
        x = ops.matmul(merge_tokens(dependents), kernel[:-1])
        x = ops.add(x, kernel[-1])
        x = ops.reshape(x, prepend_batch(inputs, length * number, self._head_dim))
        affine = x[:, :, self.hidden_dim :]  # (B, T·N, 1), or nothing
        x = ops.matmul(x[:, :, : self.hidden_dim], ops.transpose(heads, (0, 2, 1)))
        if self.num_outputs is None:
            x = self._hide_padding(x, mask)  # (B, T, T + 1)
            if scope.wants_weights(self):
                scope.record_weights(self, ops.expand_dims(ops.softmax(x, axis=-1), axis=1))
            return x
        # Keras makes an addition along axis 1 a BiasAdd of channels, which LiteRT does not have.
        x = ops.subtract(x, ops.negative(affine))
        x = self._hide_padding(x, mask)  # (B, T·N, T + 1)
        x = ops.reshape(x, prepend_batch(inputs, length, number, length + 1))
        return ops.transpose(x, (0, 1, 3, 2))

    def _hide_padding(self, x, mask):
        if mask is None:
            return x
        visible = ops.pad(mask, ((0, 0), (1, 0)), constant_values=True)  # the root is
        visible = ops.expand_dims(ops.cast(visible, x.dtype), axis=1)  # (B, 1, T + 1)
        constant = max(scope.mask_constant(), FLOAT16_LOWEST)
        return ops.add(ops.multiply(x, visible), ops.multiply(ops.subtract(1.0, visible), constant))

    def compute_output_shape(self, input_shape):
        batch, length, _ = input_shape
        shape = (batch, length, None if length is None else length + 1)
        return shape if self.num_outputs is None else (*shape, self.num_outputs)

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)
