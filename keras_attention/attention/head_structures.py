"""Structures between the projections of multi-head attention: norms, slots, mixed heads, a sink."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import shapes
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.softmax import softmax_with_sink
from keras_attention.positions.base import Position
from keras_attention.scores.base import score_pairs

QK_NORMS = (None, "rms_norm", "layer_norm")


def head_norm(kind, epsilon=1e-6, **kwargs):
    """Make a layer that normalizes (B, T, N, H) over H, with one learned scale (H,).

    `"rms_norm"` is Qwen3's and Gemma 3's, `"layer_norm"`, without bias, that of the ViT-22B
    (Dehghani et al., 2023, section 2).
    """
    if kind == "rms_norm":
        layer = keras.layers.RMSNormalization(epsilon=epsilon, **kwargs)
    else:
        layer = keras.layers.LayerNormalization(epsilon=epsilon, center=False, **kwargs)
    layer.supports_masking = True  # RMSNormalization does not declare it, and Keras warns
    return layer


class HeadStructures(keras.layers.Layer):
    """Normalized queries and keys, memory slots, talking heads and a sink, or any of them.

    On a row of scores they act in this order: slots are appended, heads are mixed, the sink joins
    the denominator, heads are mixed again.

    Args:
        query_heads: (N, H), of the queries. value_heads: (K, Hv), of the values.
        qk_norm, sink, num_memory_slots, talking_heads: as in `MultiHeadAttention`.
        epsilon: float, of `qk_norm`.
    """

    def __init__(
        self,
        query_heads,
        value_heads,
        qk_norm,
        sink,
        num_memory_slots,
        talking_heads,
        *,
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        (num_heads, self.key_dim), (num_key_value_heads, value_dim) = query_heads, value_heads
        dtype = self.dtype_policy
        self.query_norm = self.key_norm = self.sink = self.slots = self.talking_heads = None
        if qk_norm:
            self.query_norm = head_norm(qk_norm, epsilon, dtype=dtype, name="query_norm")
            self.key_norm = head_norm(qk_norm, epsilon, dtype=dtype, name="key_norm")
        if num_memory_slots:
            sizes = (num_memory_slots, num_key_value_heads, self.key_dim, value_dim)
            self.slots = MemorySlots(*sizes, dtype=dtype, name="memory_slots")
        if talking_heads:
            self.talking_heads = TalkingHeads(num_heads, dtype=dtype, name="talking_heads")
        if sink:
            self.sink = Sink(num_heads, dtype=dtype, name="sink")

    def build(self, input_shape=None):
        heads = (None, None, None, self.key_dim)
        for part in (self.query_norm, self.key_norm, self.slots, self.talking_heads, self.sink):
            if part is not None:
                part.build(heads)

    def normalize_query(self, query):
        """Return normalized queries (B, T, N, H)."""
        return query if self.query_norm is None else self.query_norm(query)

    def normalize_key(self, key):
        """Return normalized keys (B, S, K, H)."""
        return key if self.key_norm is None else self.key_norm(key)

    def wrap_normalizer(self, normalizer):
        """Return `normalizer` between talking heads, with the sink in its denominator."""
        if self.sink is not None:
            normalizer = SoftmaxWithSink(normalizer, self.sink)
        return normalizer if self.talking_heads is None else Talking(normalizer, self.talking_heads)


class MemorySlots(keras.layers.Layer):
    """Learned keys and values beside those of the tokens (Sukhbaatar et al., 2019).

    Every query may attend to every slot. Slots join a row of scores where it is normalized, after
    what positions and masks do to it: they have no position, and no mask hides them. They come last
    in the row. PyTorch's `add_bias_kv` is one slot, its `add_zero_attn` is
    `Softmax(plus_one=True)`.

    Args:
        num_slots: int, M. num_heads: int, K, the key and value heads. key_dim: int, H.
            value_dim: int, Hv.
    """

    weight_axes = {
        "keys": ("rows", "key_value_heads", "head_dim"),
        "values": ("rows", "key_value_heads", "head_dim"),
    }

    def __init__(self, num_slots, num_heads, key_dim, value_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_slots, self.num_heads = num_slots, num_heads
        self.key_dim, self.value_dim = key_dim, value_dim

    def build(self, input_shape=None):
        self.keys, self.values = (
            self.add_weight(
                name=name,
                shape=(self.num_slots, self.num_heads, size),
                initializer=keras.initializers.RandomNormal(stddev=1.0),
            )
            for name, size in [("keys", self.key_dim), ("values", self.value_dim)]
        )

    def append_to(self, value, heads_first=False):
        """Return values (B, S, K, Hv) with those of the slots after them, (B, S + M, K, Hv)."""
        slots = ops.cast(self.values, value.dtype)
        slots = ops.transpose(slots, (1, 0, 2)) if heads_first else slots
        slots = shapes.tile(ops.expand_dims(slots, axis=0), (ops.shape(value)[0], 1, 1, 1))
        return ops.concatenate([value, slots], axis=2 if heads_first else 1)

    def join(self, equation, query):
        """Return `equation`, for rows to which the scores of the slots are appended.

        `query` (B, T, N, H) has not been rotated: the score of a slot does not depend on
        the query's position.
        """
        normalizer = _WithSlots(equation.normalizer, self._scores(equation.score, query))
        position = equation.position
        if position is not None:
            position = _PositionWithSlots(position, self.num_slots)
        return dataclasses.replace(equation, normalizer=normalizer, position=position)

    def _scores(self, score, query):
        """Return (B, N, T, M)."""
        heads, size = query.shape[2:]
        keys = ops.cast(self.keys, query.dtype)
        keys = ops.repeat(keys, heads // self.num_heads, axis=1)
        if not merges_tokens():
            keys = ops.broadcast_to(keys, (ops.shape(query)[0], *keys.shape))
            return score_pairs(score, query, keys)
        # All queries as one long example: one copy of the slots serves them all.
        batch, length = prepend_batch(query, ops.shape(query)[1])
        rows = ops.reshape(query, (1, -1, heads, size))
        scores = score_pairs(score, rows, ops.expand_dims(keys, axis=0))
        scores = ops.reshape(scores, (heads, batch, length, self.num_slots))
        return ops.transpose(scores, (1, 0, 2, 3))


class _WithSlots(Normalizer):
    def __init__(self, normalizer, slots):
        self.normalizer, self.slots = normalizer, slots

    def __call__(self, scores, mask=None):
        row = ops.concatenate([scores, ops.cast(self.slots, scores.dtype)], axis=-1)
        if mask is not None:
            mask = _open(mask, ops.shape(scores)[-1], self.slots.shape[-1])
        return self.normalizer(row, mask)


class _PositionWithSlots(Position):
    def __init__(self, position, slots):
        self.position, self.slots, self.roles = position, slots, position.roles

    def check_length(self, length, exact=True):
        self.position.check_length(length, exact)

    def rotate(self, x, positions=None):
        return self.position.rotate(x, positions)

    def rotate_key(self, x, positions=None):
        return self.position.rotate_key(x, positions)

    def bias(self, query_positions, key_positions, query, key=None):
        return self.position.bias(query_positions, key_positions, query, key)

    def values(self, query_positions, key_positions, weights):
        of_tokens = weights[:, :, :, : -self.slots]
        return self.position.values(query_positions, key_positions, of_tokens)


def _open(mask, length, slots):
    """Return a mask (..., `length` or 1) with `slots` columns of True after it."""
    ones = [1] * (len(mask.shape) - 1)
    allowed = ops.cast(mask, "float32") + ops.zeros((*ones, length))
    return ops.cast(
        ops.pad(allowed, [[0, 0] for _ in ones] + [[0, slots]], constant_values=1.0), "bool"
    )


class TalkingHeads(keras.layers.Layer):
    """Mixes the heads, before the normalizer and after it (Shazeer et al., 2020).

    With J the scores, `L = J P_l`, `W = normalize(L)` and `U = W P_w`, where the sums are over
    heads. The paper's P_l is `score_kernel`, its P_w `weight_kernel`, both (N, N): head n is column
    n. They start as the identity: no mixing.

    Masks come after the first mixing, and, where heads have masks of their own, again after the
    second: a head gets no weight where it may not attend, from other heads either.

    Args:
        num_heads: int, N.
    """

    weight_axes = {"score_kernel": ("heads", "heads"), "weight_kernel": ("heads", "heads")}

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, input_shape=None):
        self.score_kernel, self.weight_kernel = (
            self.add_weight(
                name=name,
                shape=(self.num_heads, self.num_heads),
                initializer=keras.initializers.Identity(),
            )
            for name in ("score_kernel", "weight_kernel")
        )


class Talking(Normalizer):
    """A normalizer between the two mixings of `TalkingHeads`."""

    def __init__(self, normalizer, heads):
        self.normalizer, self.heads = normalizer, heads

    def __call__(self, scores, mask=None):
        weights = self.normalizer(_mix(scores, self.heads.score_kernel), mask)
        weights = _mix(weights, self.heads.weight_kernel)
        if mask is not None and mask.shape[1] != 1:
            weights = ops.multiply(weights, ops.cast(mask, weights.dtype))
        return weights


def _mix(x, kernel):
    """Map (B, M, T, S) and (M, N) to (B, N, T, S), on a CPU several times faster than einsum."""
    heads, rows, columns = kernel.shape[1], *ops.shape(x)[2:]
    flat = ops.reshape(x, prepend_batch(x, x.shape[1], rows * columns))
    mixed = ops.matmul(ops.transpose(ops.cast(kernel, x.dtype)), flat)
    return ops.reshape(mixed, prepend_batch(x, heads, rows, columns))


class Sink(keras.layers.Layer):
    """A learned score for each head, in the softmax's denominator alone.

    `weights = exp(s) / (exp(sink) + sum exp(s))`: the softmax over scores and sink, without the
    sink's column (gpt-oss model card, OpenAI, 2025). It starts at 0, as `Softmax(plus_one=True)`.

    Args:
        num_heads: int, N.
    """

    weight_axes = {"logits": ("heads",)}

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, input_shape=None):
        self.logits = self.add_weight(
            name="logits",
            shape=(self.num_heads,),
            initializer="zeros",
            dtype="float32",
            autocast=False,
        )


class SoftmaxWithSink(Normalizer):
    """A softmax with a `Sink` in its denominator, after its temperature and soft cap."""

    def __init__(self, softmax, sink):
        self.softmax, self.layer = softmax, sink
        self.temperature, self.exponents = softmax.temperature, softmax.exponents

    @property
    def sink(self):
        return self.layer.logits

    def prepare(self, scores):
        return self.softmax.prepare(scores)

    def normalize(self, scores, allowed):
        scores = scores / self.temperature
        return softmax_with_sink(scores, ops.reshape(self.sink, (1, -1, 1, 1)))
