"""Differential attention: the difference of two attention maps."""

import functools
import math

import keras
from keras import ops

from keras_attention.attention import arguments, kv_cache
from keras_attention.attention.base import AttentionLayer
from keras_attention.attention.projection import ProjectionOwner, project
from keras_attention.core import checks

LAMBDAS = ("lambda_query_1", "lambda_key_1", "lambda_query_2", "lambda_key_2")


@keras.saving.register_keras_serializable(package="keras_attention")
class DifferentialAttention(AttentionLayer, ProjectionOwner):
    """Two attention maps, one subtracted from the other (Ye et al., 2024, section 2.1).

    `output = RMSNorm((A1 - λ A2) · v) (1 - λ_init)` for each head. The head's query and key are
    split into two halves. A1 and A2 are the attention weights of the first and the second half, and
    noise that is in both cancels out. The scalar
    `λ = exp(q1 · k1) - exp(q2 · k2) + λ_init` is shared by all heads, where q1, k1, q2 and k2 are
    learned vectors. As in the paper's code, all heads share the scale of the RMSNorm. The paper's
    text describes a GroupNorm instead.

    With N heads of size H, this layer has projections as large as a `MultiHeadAttention` with 2N
    heads.

    Args:
        num_heads: int, N, the number of heads.
        key_dim: int, H, the size of a query or key head in each of the two maps.
        value_dim: int, the size of a value head. None means 2H.
        depth: int l, the number of this layer in its stack, counted from 1. It determines
            `λ_init = 0.8 - 0.6 exp(-0.3 (l - 1))`. None uses the limit, 0.8.
        num_key_value_heads: int K, a divisor of N. Query head h uses key head h // (N / K). None
            means N.
        use_bias: bool, whether the projections have a bias.
        kernel_initializer: initializer of the projections' kernels.
        kwargs: other arguments of `AttentionLayer`. Both maps share the score and the position
            encoding. Dropout is sampled separately for each map.

    Call arguments: those of `AttentionLayer`.

    The returned and recorded weights are A1 - λ A2, of shape (B, N, T, S). Their rows sum to 1 - λ,
    and they may be negative. For a query that sees no key, all heads are exactly zero. The output
    has the query's implicit Keras mask.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.DifferentialAttention(num_heads=2, key_dim=6, depth=3, position="rotary")
    assert layer(x, x, use_causal_mask=True).shape == (2, 7, 24)
    assert abs(layer.lambda_init - 0.47) < 0.01
    ```
    """

    own_arguments = (
        *("num_heads", "key_dim", "value_dim", "depth", "num_key_value_heads", "use_bias"),
        "kernel_initializer",
    )

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        depth=None,
        num_key_value_heads=None,
        use_bias=False,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.key_dim = num_heads, key_dim
        self.value_dim = 2 * key_dim if value_dim is None else value_dim
        self.num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        self.depth, self.use_bias = depth, use_bias
        checks.check_whole_numbers(self, "num_heads", "key_dim", "value_dim", "num_key_value_heads")
        checks.check_whole_numbers(self, "depth", optional=True)
        arguments.check_groups(self.num_heads, self.num_key_value_heads)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    @property
    def lambda_init(self):
        """Return λ_init, the part of λ that is not learned (Ye et al., 2024, section 2.1)."""
        return 0.8 if self.depth is None else 0.8 - 0.6 * math.exp(-0.3 * (self.depth - 1))

    def build(self, query_shape, value_shape, key_shape=None):
        width, heads = query_shape[-1], self.num_heads
        keys = (self.num_key_value_heads, 2 * self.key_dim)
        values = (self.num_key_value_heads, self.value_dim)
        make = functools.partial(project, self, use_bias=self.use_bias)
        self._query_dense = make("query", (width,), (heads, 2 * self.key_dim))
        self._key_dense = make("key", tuple(key_shape or value_shape)[-1:], keys)
        self._value_dense = make("value", tuple(value_shape)[-1:], values)
        self._output_dense = make("attention_output", (heads, self.value_dim), (width,))
        self._head_norm = keras.layers.RMSNormalization(
            epsilon=1e-5, dtype=self.dtype_policy, name="head_norm"
        )
        self._head_norm.build((None, None, heads, self.value_dim))
        for name in LAMBDAS:
            # float32 under every policy, for the exponential
            weight = self.add_weight(
                name=name,
                shape=(self.key_dim,),
                initializer=keras.initializers.RandomNormal(stddev=0.1),
                autocast=False,
            )
            setattr(self, f"_{name}", weight)
        self.build_parts((query_shape[0], None, heads, self.key_dim))  # the shape of one map

    def project_key_value(self, value, key, visibility):
        """Return a dict of the unrotated keys of both maps and the values.

        `"key"` is (B, S, K, 2H) and `"value"` is (B, S, K, Hv), from the inputs `key` and `value`
        (B, S, D). `visibility`, the masks of the call, is not used.
        """
        return {"key": self._key_dense(key), "value": self._value_dense(value)}

    @property
    def cache_shapes(self):
        heads = self.num_key_value_heads
        return {"key": (heads, 2 * self.key_dim), "value": (heads, self.value_dim)}

    def project_for_cache(self, value, key, visibility):
        heads, positions = self.project_key_value(value, key, visibility), visibility.key_positions
        if self.position is not None:
            maps = ops.split(heads["key"], 2, axis=3)
            rotated = [self.position.rotate_key(keys, positions) for keys in maps]
            heads["key"] = ops.concatenate(rotated, axis=3)
        return kv_cache.rotate_and_transpose(None, heads, positions)

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        queries, keys = (ops.split(x, 2, axis=3) for x in (query, heads["key"]))
        how = equation, visibility, return_weights, implementation
        (first, weights), (second, second_weights) = (
            self.attend(queries[i], keys[i], heads["value"], *how) for i in (0, 1)
        )
        query_1, key_1, query_2, key_2 = (getattr(self, f"_{name}") for name in LAMBDAS)
        factor = ops.exp(ops.sum(ops.multiply(query_1, key_1)))  # λ, equation 2, in float32
        factor = factor - ops.exp(ops.sum(ops.multiply(query_2, key_2))) + self.lambda_init
        factor = ops.cast(factor, first.dtype)
        if weights is not None:
            weights = ops.subtract(weights, ops.multiply(factor, second_weights))
        output = self._head_norm(ops.subtract(first, ops.multiply(factor, second)))
        return ops.multiply(output, 1 - self.lambda_init), weights
