"""Learned vectors that are the same for every example: prefix tokens and object queries."""

import keras
from keras import ops

from keras_attention.core import scope, shapes
from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class PrefixTokens(OwnArguments, keras.layers.Layer):
    """Adds learned vectors at the beginning of every sequence.

    A single vector is a class token, whose output represents the whole sequence (Devlin et al.,
    2019, section 3). Several vectors are registers (Darcet et al., 2024) or a soft prompt (Lester
    et al., 2021, section 2). After the encoder, `Pooling("cls")` returns the first vector, and
    `Pooling("mean", num_prefix_tokens=P)` ignores all of them.

    Args:
        num_tokens: int P, number of learned vectors.

    Call arguments:
        inputs: (B, T, D), with positions already added. No positions are added to the learned
            vectors.

    Returns (B, P + T, D), with the mask of the inputs, extended by True for the learned vectors.

    ```python
    import numpy as np
    import keras_attention as ka

    prefix = ka.blocks.PrefixTokens(2)
    assert prefix(np.ones((3, 5, 4))).shape == (3, 7, 4)
    mask = prefix.compute_mask(None, np.array([[True, True, False]]))
    assert np.array_equal(mask, [[True, True, True, True, False]])
    ```
    """

    own_arguments = ("num_tokens",)
    weight_axes = {"tokens": ("rows", "rows", "embed")}

    def __init__(self, num_tokens=1, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.num_tokens = check_whole_number("PrefixTokens", "num_tokens", num_tokens)

    def build(self, input_shape):
        self.tokens = self.add_weight(
            shape=(1, self.num_tokens, input_shape[-1]),
            initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            name="tokens",
        )

    def call(self, inputs):
        scope.refuse_decoding(f"{self.name} adds tokens before the input of every call.")
        tokens = shapes.tile(ops.cast(self.tokens, inputs.dtype), (ops.shape(inputs)[0], 1, 1))
        return ops.concatenate([tokens, inputs], axis=1)

    def compute_mask(self, inputs, previous=None):
        if previous is None:
            return None
        # Padding with False, because tf2onnx does not convert a padding of bool with True.
        hidden = ops.logical_not(previous)
        return ops.logical_not(ops.pad(hidden, ((0, 0), (self.num_tokens, 0))))

    def compute_output_shape(self, input_shape):
        batch, length, width = input_shape
        return (batch, None if length is None else length + self.num_tokens, width)


@keras.saving.register_keras_serializable(package="keras_attention")
class ObjectQueries(OwnArguments, keras.layers.Layer):
    """Returns learned queries for the decoder of an object detector (Carion et al., 2020).

    The queries are a weight (Q, D), which is repeated for every image of the batch.

    Args:
        num_queries: int Q, number of queries, the maximum number of objects in an image.
        hidden_dim: int D, the size of a query.

    Call arguments:
        inputs: any tensor (B, ...). Only its batch size is used.

    Returns (B, Q, D).

    ```python
    import numpy as np
    import keras_attention as ka

    assert ka.blocks.ObjectQueries(5, 16)(np.ones((2, 9, 8))).shape == (2, 5, 16)
    ```
    """

    own_arguments = ("num_queries", "hidden_dim")
    weight_axes = {"queries": ("rows", "rows", "embed")}

    def __init__(self, num_queries, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_queries = check_whole_number("ObjectQueries", "num_queries", num_queries)
        self.hidden_dim = check_whole_number("ObjectQueries", "hidden_dim", hidden_dim)

    def build(self, input_shape):
        self.queries = self.add_weight(
            shape=(1, self.num_queries, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
            name="queries",
        )

    def call(self, inputs):
        return shapes.tile(ops.cast(self.queries, self.compute_dtype), (ops.shape(inputs)[0], 1, 1))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_queries, self.hidden_dim)
