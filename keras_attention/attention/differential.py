"""The difference of two attention maps."""

import functools
import math

import keras
from keras import ops

from keras_attention import checks, masks
from keras_attention.attention import incremental, kernels, masking, parts, recording
from keras_attention.attention.attend import attend
from keras_attention.attention.call_mask import call_mask
from keras_attention.attention.project import project

LAMBDAS = ("lambda_query_1", "lambda_key_1", "lambda_query_2", "lambda_key_2")


@keras.saving.register_keras_serializable(package="keras_attention")
class DifferentialAttention(keras.layers.Layer):
    """Two attention maps, one subtracted from the other (Ye et al., 2024, section 2.1).

    `output = RMSNorm((A1 - λ A2) · v) (1 - λ_init)` for each head, where A1 and A2 come from the
    two halves of its query and key: what both maps see is noise and cancels. The difference is
    normalized head by head, with one scale for all heads (the paper's code; its text says
    GroupNorm). `λ = exp(q1 · k1) - exp(q2 · k2) + λ_init` is learned, one for the layer.

    Called as `MultiHeadAttention` is. With N heads of size H its projections are those of a
    `MultiHeadAttention` with 2N.

    Args:
        num_heads: int, N.
        key_dim: int, H, the size of a head of queries and keys in each of the two maps.
        value_dim: int, the size of a head of values; None is 2H.
        depth: int l, which layer of its stack this is, from 1: `λ_init = 0.8 - 0.6 exp(-0.3(l-1))`.
            None is 0.8 in every layer, where that leads.
        num_key_value_heads: int K that divides N; query head h uses key head h // (N / K).
        score, normalizer, mask, position: as in `MultiHeadAttention`; both maps use the same, whose
            weights they share if it has any.
        dropout: float, the share of weights dropped in training, from each map on its own.
        use_bias: bool, whether the projections have a bias.
        kernel: name of the way both maps are computed; None picks one, as in `MultiHeadAttention`.
        kernel_initializer: of the projections.
        seed: int, for dropout.

    Call arguments:
        query: (B, T, D). value: (B, S, D). key: (B, S, D), default `value`.
        query_mask, value_mask, key_mask, attention_mask, use_causal_mask, segment_ids,
            value_segment_ids, query_positions, value_positions, training: as in
            `MultiHeadAttention`.

    A query that may attend to nothing has zeros in all heads, and the output carries the query's
    mask. `record_attention` shows A1 - λ A2, (B, N, T, S): its rows sum to 1 - λ, and weights may
    be negative.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.DifferentialAttention(num_heads=2, key_dim=6, depth=3, position="rotary")
    assert layer(x, x, use_causal_mask=True).shape == (2, 7, 24)
    assert abs(layer.lambda_init - 0.47) < 0.01
    ```
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        depth=None,
        num_key_value_heads=None,
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        dropout=0.0,
        use_bias=False,
        kernel=None,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads, self.key_dim = num_heads, key_dim
        self.value_dim = 2 * key_dim if value_dim is None else value_dim
        self.num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        self.depth = depth
        checks.whole(self, "num_heads", "key_dim", "value_dim", "num_key_value_heads")
        if depth is not None:
            checks.whole(self, "depth")
        if self.num_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_key_value_heads={self.num_key_value_heads} does not divide "
                f"num_heads={self.num_heads}. Choose a divisor of {self.num_heads}."
            )
        self.score = parts.score(score, self.dtype_policy)
        self.normalizer = parts.normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = parts.position(position, self.dtype_policy)
        self.dropout, self.seed, self.use_bias = dropout, seed, use_bias
        self.kernel = kernel
        if kernel is not None:
            kernels.module(kernel)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self._dropout_layer = None
        if dropout:
            self._dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    @property
    def lambda_init(self):
        """The part of λ that is not learned (Ye et al., 2024, section 2.1)."""
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
            # float32 under every policy: an exponential follows
            weight = self.add_weight(
                name=name,
                shape=(self.key_dim,),
                initializer=keras.initializers.RandomNormal(stddev=0.1),
                autocast=False,
            )
            setattr(self, f"_{name}", weight)
        in_one_map = (query_shape[0], None, heads, self.key_dim)
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            self.score.build(in_one_map, in_one_map)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build(in_one_map)

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=False,
        segment_ids=None,
        value_segment_ids=None,
        query_positions=None,
        value_positions=None,
    ):
        structure = masking.together(self.mask, masks.Causal() if use_causal_mask else None)
        given = {
            "attention_mask": attention_mask,
            "segment_ids": segment_ids,
            "value_segment_ids": value_segment_ids,
        }
        tokens = masking.both(value_mask, key_mask)
        seen = incremental.recall(
            self,
            lambda positions: self._to_keep(value, key, positions),
            self._kept,
            query,
            value,
            mask=structure,
            value_mask=tokens,
            query_positions=query_positions,
            value_positions=value_positions,
            **given,
        )
        if seen is None:
            keys, values = self._key_dense(value if key is None else key), self._value_dense(value)
        else:
            keys, values, tokens = seen.heads["key"], seen.heads["value"], seen.mask
            query_positions, value_positions = seen.query_positions, seen.key_positions
        allowed = call_mask(query, query_mask=query_mask, value_mask=tokens, **given)
        dropout = self._dropout_layer if training else None
        wanted = recording.wanted(self)

        def one_map(queries, keys):
            found = attend(
                queries,
                keys,
                values,
                score=self.score,
                normalizer=self.normalizer,
                mask=structure,
                position=self.position,
                attention_mask=allowed,
                query_positions=query_positions,
                key_positions=value_positions,
                dropout=dropout and (lambda weights: dropout(weights, training=True)),
                return_weights=wanted,
                kernel=self.kernel,
                cached=seen is not None,
            )
            return found if wanted else (found, None)

        queries = ops.split(self._query_dense(query), 2, axis=3)  # two of (B, T, N, H)
        keys = ops.split(keys, 2, axis=3)
        (first, weights), (second, other) = map(one_map, queries, keys)
        factor = ops.cast(self._lambda(), first.dtype)
        if wanted:
            recording.record(self, ops.subtract(weights, ops.multiply(factor, other)))
        output = self._head_norm(ops.subtract(first, ops.multiply(factor, second)))
        return self._output_dense(ops.multiply(output, 1 - self.lambda_init))

    @property
    def _kept(self):
        """What a cache keeps of a token."""
        heads = self.num_key_value_heads
        return {"key": (heads, 2 * self.key_dim), "value": (heads, self.value_dim)}

    def _to_keep(self, value, key, positions):
        """The keys of both maps, rotated, and the values, heads first."""
        keys, values = self._key_dense(value if key is None else key), self._value_dense(value)
        if self.position is not None:
            turned = [self.position.rotate_key(x, positions) for x in ops.split(keys, 2, axis=3)]
            keys = ops.concatenate(turned, axis=3)
        return incremental.to_keep(None, keys, values, positions)

    def _lambda(self):
        """Equation 2, in float32."""
        query_1, key_1, query_2, key_2 = (getattr(self, f"_{name}") for name in LAMBDAS)
        first = ops.exp(ops.sum(ops.multiply(query_1, key_1)))
        second = ops.exp(ops.sum(ops.multiply(query_2, key_2)))
        return first - second + self.lambda_init

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return query_shape

    def get_config(self):
        plain = (
            "num_heads key_dim value_dim depth num_key_value_heads dropout use_bias kernel seed"
        ).split()
        objects = "score normalizer mask position kernel_initializer".split()
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain},
            **{n: keras.saving.serialize_keras_object(getattr(self, n)) for n in objects},
        }
