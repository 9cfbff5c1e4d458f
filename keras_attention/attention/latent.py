"""Multi-head latent attention: keys and values of all heads in one narrow vector a token."""

import keras
from keras import ops

from keras_attention import checks, masks, scores
from keras_attention.attention import incremental, kernels, masking, parts, recording
from keras_attention.attention.attend import attend
from keras_attention.attention.call_mask import call_mask
from keras_attention.attention.project import project


@keras.saving.register_keras_serializable(package="keras_attention")
class LatentAttention(keras.layers.Layer):
    """Multi-head latent attention, MLA (DeepSeek-AI, 2024, "DeepSeek-V2", section 2.1).

    Each value token becomes a latent vector of C features, normalized, out of which the keys and
    values of all heads are made, and one key of R features that all heads share and that alone is
    rotated ("decoupled"). These C + R numbers are all that later queries need of a token: a cache
    is (B, S, C + R), where that of a `MultiHeadAttention` is (B, S, 2NH).

    Scores are `(q · k + q_rotated · k_rotated) / √(H + R)`. No projection has a bias, and the
    latents are normalized by their root mean square, as in the published models.

    Args:
        num_heads: int, N.
        key_dim: int, H, the size of a head of queries and keys without the rotated part (the
            paper's d_h).
        latent_dim: int, C, the size of the latent vector of keys and values (d_c).
        rotary_dim: int, R, the size of the rotated part (d_h^R).
        query_latent_dim: int, the size of a latent vector for queries (d_c'), which saves weights;
            None projects queries directly.
        value_dim: int, the size of a head of values; None is H.
        normalizer, mask: as in `MultiHeadAttention`. The score is what it is.
        position: a part of `keras_attention.positions` that rotates, its name, its config or None.
        dropout: float, the share of attention weights dropped in training.
        kernel: name of the way it is computed; None picks one, as in `MultiHeadAttention`.
        kernel_initializer: of the projections.
        seed: int, for dropout.

    Call arguments:
        query: (B, T, D). value: (B, S, D), also used as key.
        query_mask, value_mask, attention_mask, use_causal_mask, segment_ids, value_segment_ids,
            query_positions, value_positions, training: as in `MultiHeadAttention`.

    A query that may attend to nothing gives exact zeros, and the output carries the query's mask.
    `record_attention` shows the weights (B, N, T, S). Calling the layer is `attend_compressed` of
    `compress`; to decode, keep what `compress` gave and attend to that.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.LatentAttention(num_heads=4, key_dim=6, latent_dim=8, rotary_dim=4)
    whole = layer(x, x, use_causal_mask=True)
    cache = layer.compress(x[:, :6])  # (B, S, C + R)
    assert cache.shape == (2, 6, 12)
    cache = np.concatenate([cache, layer.compress(x[:, 6:], [6])], axis=1)
    last = layer.attend_compressed(x[:, 6:], cache, query_positions=[6])
    assert np.allclose(last, whole[:, 6:], atol=1e-5)
    ```
    """

    score = scores.Dot()  # the queries are scaled

    def __init__(
        self,
        num_heads,
        key_dim,
        latent_dim,
        rotary_dim,
        query_latent_dim=None,
        value_dim=None,
        normalizer="softmax",
        mask=None,
        position="rotary",
        dropout=0.0,
        kernel=None,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads, self.key_dim = num_heads, key_dim
        self.latent_dim, self.rotary_dim = latent_dim, rotary_dim
        self.query_latent_dim = query_latent_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        checks.whole(self, "num_heads", "key_dim", "latent_dim", "rotary_dim", "value_dim")
        if query_latent_dim is not None:
            checks.whole(self, "query_latent_dim")
        self.normalizer = parts.normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = parts.rotation(position, self.dtype_policy)
        self.dropout, self.seed, self.kernel = dropout, seed, kernel
        if kernel is not None:
            kernels.module(kernel)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self._dropout_layer = None
        if dropout:
            self._dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape):
        width, value_width = tuple(query_shape)[-1:], tuple(value_shape)[-1:]
        latent, heads = (self.latent_dim,), self.num_heads
        query_heads = (heads, self.key_dim + self.rotary_dim)
        self._query_down = None
        if self.query_latent_dim is None:
            self._query_dense = project(self, "query", width, query_heads)
        else:
            query_latent = (self.query_latent_dim,)
            self._query_down = project(self, "query_down", width, query_latent)
            self._query_norm = self._norm("query_norm", self.query_latent_dim)
            self._query_dense = project(self, "query", query_latent, query_heads)
        self._latent_dense = project(self, "latent", value_width, latent)
        self._latent_norm = self._norm("latent_norm", self.latent_dim)
        self._rotary_key_dense = project(self, "rotary_key", value_width, (1, self.rotary_dim))
        self._key_up = project(self, "key_up", latent, (heads, self.key_dim))
        self._value_up = project(self, "value_up", latent, (heads, self.value_dim))
        self._output_dense = project(self, "attention_output", (heads, self.value_dim), width)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build((query_shape[0], None, heads, self.rotary_dim))

    def _norm(self, name, size):
        norm = keras.layers.RMSNormalization(epsilon=1e-6, dtype=self.dtype_policy, name=name)
        norm.supports_masking = True
        norm.build((None, None, size))
        return norm

    def call(
        self,
        query,
        value,
        query_mask=None,
        value_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=False,
        segment_ids=None,
        value_segment_ids=None,
        query_positions=None,
        value_positions=None,
    ):
        given = {
            "attention_mask": attention_mask,
            "segment_ids": segment_ids,
            "value_segment_ids": value_segment_ids,
        }
        seen = incremental.recall(
            self,
            lambda positions: {"latent": self.compress(value, positions)},
            {"latent": (self.latent_dim + self.rotary_dim,)},
            query,
            value,
            mask=masking.together(self.mask, masks.Causal() if use_causal_mask else None),
            value_mask=value_mask,
            query_positions=query_positions,
            value_positions=value_positions,
            **given,
        )
        if seen is None:
            compressed, absorb = self.compress(value, value_positions), False
        else:
            compressed, absorb = seen.heads["latent"], self._key_up.quantization_mode is None
            query_positions, value_positions = seen.query_positions, seen.key_positions
            value_mask = seen.mask
        return self.attend_compressed(
            query,
            compressed,
            absorb=absorb,
            training=training,
            query_positions=query_positions,
            value_positions=value_positions,
            query_mask=query_mask,
            value_mask=value_mask,
            use_causal_mask=use_causal_mask,
            **given,
        )

    def compress(self, value, positions=None):
        """What later queries need of `value`: the latent vectors and the rotated shared keys.

        Args:
            value: (B, S, D).
            positions: int (S,) or (B, S), where the tokens are; default 0, 1, 2, ...

        Returns:
            (B, S, latent_dim + rotary_dim). Those of more tokens are appended along S.
        """
        self._check_built()
        latent = self._latent_norm(self._latent_dense(value))
        rotated = self._rotary_key_dense(value)  # (B, S, 1, R)
        if self.position is not None:
            rotated = self.position.rotate_key(rotated, positions)
        rotated = ops.reshape(rotated, (-1, ops.shape(rotated)[1], self.rotary_dim))
        return ops.concatenate([latent, rotated], axis=2)

    def attend_compressed(
        self,
        query,
        compressed,
        *,
        absorb=True,
        training=None,
        use_causal_mask=False,
        query_positions=None,
        value_positions=None,
        **given,
    ):
        """The attention of `query` over what `compress` made of the values.

        Args:
            query: (B, T, D).
            compressed: (B, S, latent_dim + rotary_dim).
            absorb: bool, whether to leave keys and values compressed and to take the queries, and
                what is attended to, through their projections instead. The same output; less work
                for few queries over many keys, as in decoding, and more for many queries.
            training: bool, whether dropout is active.
            use_causal_mask: bool, whether keys after a query are hidden from it.
            query_positions: int (T,) or (B, T), value_positions: int (S,) or (B, S). Default:
                0, 1, 2, ..., so that a query after a cache of S tokens needs its own.
            given: other masks, with the names of the call arguments.

        Returns:
            The output (B, T, D).
        """
        self._check_built()
        compressed = ops.cast(compressed, self.compute_dtype)
        latent, rotated = ops.split(compressed, [self.latent_dim], axis=2)
        rotated = ops.expand_dims(rotated, axis=2)  # (B, S, 1, R)
        queries, rotated_queries = self._queries(query, query_positions)
        if absorb:  # one key head and one value head for all: (B, S, 1, C + R) and (B, S, 1, C)
            queries = self._through(self._key_up, "btnh,cnh->btnc", queries)
            values = ops.expand_dims(latent, axis=2)
            keys = ops.concatenate([values, rotated], axis=3)
        else:
            rotated = ops.tile(rotated, (1, 1, self.num_heads, 1))
            keys = ops.concatenate([self._key_up(latent), rotated], axis=3)
            values = self._value_up(latent)
        dropout = self._dropout_layer if training else None
        wanted = recording.wanted(self)
        output = attend(
            ops.concatenate([queries, rotated_queries], axis=3),
            keys,
            values,
            score=self.score,
            normalizer=self.normalizer,
            mask=masking.together(self.mask, masks.Causal() if use_causal_mask else None),
            attention_mask=call_mask(query, **given),
            query_positions=query_positions,
            key_positions=value_positions,
            dropout=dropout and (lambda weights: dropout(weights, training=True)),
            return_weights=wanted,
            kernel=self.kernel,
        )
        if wanted:
            output, weights = output
            recording.record(self, weights)
        if absorb:
            output = self._through(self._value_up, "btnc,cnh->btnh", output)
        return self._output_dense(output)

    def _check_built(self):
        if not self.built:
            raise ValueError(
                f"{self.name} has no weights yet. Call it once, or its "
                "build(query_shape, value_shape), before its compress and attend_compressed."
            )

    def _queries(self, query, positions):
        """Scaled by 1 / √(H + R): (B, T, N, H), and the rotated part (B, T, N, R)."""
        if self._query_down is not None:
            query = self._query_norm(self._query_down(query))
        queries = ops.multiply(self._query_dense(query), (self.key_dim + self.rotary_dim) ** -0.5)
        queries, rotated = ops.split(queries, [self.key_dim], axis=3)
        if self.position is not None:
            rotated = self.position.rotate(rotated, positions)
        return queries, rotated

    @staticmethod
    def _through(projection, equation, x):
        """`x` through the kernel of `projection`, the other way round for queries."""
        if projection.quantization_mode is not None:
            raise ValueError(
                f"absorb=True takes queries through the kernel of {projection.name!r} itself, "
                f"which is quantized ({projection.quantization_mode}). Use absorb=False."
            )
        return ops.einsum(equation, x, ops.cast(projection.kernel, x.dtype))

    def compute_output_shape(self, query_shape, value_shape):
        return query_shape

    def get_config(self):
        plain = (
            "num_heads key_dim latent_dim rotary_dim query_latent_dim value_dim dropout kernel seed"
        ).split()
        objects = "normalizer mask position kernel_initializer".split()
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain},
            **{n: keras.saving.serialize_keras_object(getattr(self, n)) for n in objects},
        }
