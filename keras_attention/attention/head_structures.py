"""Optional extras of multi-head attention: query and key norms, slots, talking heads, a sink."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import shapes
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.softmax import softmax_with_sink
from keras_attention.scores.base import score_pairs

QK_NORMS = (None, "rms_norm", "layer_norm")


def head_norm(kind, epsilon=1e-6, **kwargs):
    """Return a layer that normalizes heads (B, T, N, H) over H, with a learned scale (H,).

    The layer has no bias, and adds `epsilon`, a float, before it divides. `kwargs` are other
    arguments of the Keras layer. `kind` is `"rms_norm"`, as in Qwen3 and Gemma 3, or
    `"layer_norm"`, as in ViT-22B (Dehghani et al., 2023, section 2).
    """
    if kind == "rms_norm":
        layer = keras.layers.RMSNormalization(epsilon=epsilon, **kwargs)
    else:
        layer = keras.layers.LayerNormalization(epsilon=epsilon, center=False, **kwargs)
    layer.supports_masking = True  # RMSNormalization does not declare it, and Keras warns
    return layer


class HeadStructures(keras.layers.Layer):
    """Holds the optional weights of `MultiHeadAttention`: norms, slots, talking heads and a sink.

    A call of attention applies these steps in order: normalize queries and keys, append the scores
    of the memory slots, mix the heads' scores, add the sink to the softmax's denominator, and mix
    the heads' weights.

    Args:
        query_heads: (N, H), number and size of the query heads.
        value_heads: (K, Hv), number and size of the value heads.
        qk_norm: `"rms_norm"` or `"layer_norm"`, which normalizes queries and keys, or None.
        sink: bool, whether each head has a learned score in the softmax's denominator.
        num_memory_slots: int, the number of slots: learned keys and values that every query sees.
        talking_heads: bool, whether learned matrices mix scores and weights across the heads.
        epsilon: float, a small number that the norms add before they divide.
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
        """Apply the query norm, if this layer has one, to queries (B, T, N, H)."""
        return query if self.query_norm is None else self.query_norm(query)

    def normalize_key(self, key):
        """Apply the key norm, if this layer has one, to keys (B, S, K, H)."""
        return key if self.key_norm is None else self.key_norm(key)

    def wrap_normalizer(self, normalizer):
        """Return `normalizer`, extended by the sink and the talking heads that this layer has."""
        if self.sink is not None:
            normalizer = SoftmaxWithSink(normalizer, self.sink)
        return normalizer if self.talking_heads is None else Talking(normalizer, self.talking_heads)


class MemorySlots(keras.layers.Layer):
    """Learned keys and values that all queries see, next to the tokens (Sukhbaatar et al., 2019).

    Every query sees every slot: positions and masks do not apply to the scores of slots. PyTorch's
    `add_bias_kv` is equivalent to one slot, and its `add_zero_attn` to `Softmax(plus_one=True)`.

    Args:
        num_slots: int, M, the number of slots.
        num_heads: int, K, the number of key and value heads.
        key_dim: int, H, the size of a key head.
        value_dim: int, Hv, the size of a value head.
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
        """Append the learned values of M slots to `value`, and return (B, S + M, K, Hv).

        `value` is (B, S, K, Hv), for S tokens. With `heads_first`, a bool, `value` and the result
        have the layout of a cache instead, (B, K, S, Hv) and (B, K, S + M, Hv).
        """
        slots = ops.cast(self.values, value.dtype)
        slots = ops.transpose(slots, (1, 0, 2)) if heads_first else slots
        slots = shapes.tile(ops.expand_dims(slots, axis=0), (ops.shape(value)[0], 1, 1, 1))
        return ops.concatenate([value, slots], axis=2 if heads_first else 1)

    def join(self, equation, query):
        """Return a copy of an `Equation` that also computes the scores of each query and slot.

        An `Equation` has the score, normalizer and position encoding of a call. The slots are
        learned keys. `query` (B, T, N, H) must not be rotated, because slots have no position.
        """
        normalizer = _WithSlots(equation.normalizer, self._scores(equation.score, query))
        return dataclasses.replace(equation, normalizer=normalizer, num_slots=self.num_slots)

    def _scores(self, score, query):
        """Compute the `score` of each query (B, T, N, H) and each of the M slots: (B, N, T, M)."""
        heads, size = query.shape[2:]
        keys = ops.cast(self.keys, query.dtype)
        keys = ops.repeat(keys, heads // self.num_heads, axis=1)
        if not merges_tokens():
            keys = ops.broadcast_to(keys, (ops.shape(query)[0], *keys.shape))
            return score_pairs(score, query, keys)
        # All queries form one long sequence, so that the slots are not copied for each batch row.
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


def _open(mask, length, slots):
    """Append `slots` columns of True to a mask (..., `length` or 1): all queries see the slots."""
    ones = [1] * (len(mask.shape) - 1)
    allowed = ops.cast(mask, "float32") + ops.zeros((*ones, length))
    return ops.cast(
        ops.pad(allowed, [[0, 0] for _ in ones] + [[0, slots]], constant_values=1.0), "bool"
    )


class TalkingHeads(keras.layers.Layer):
    """Learned matrices that mix heads before and after the normalizer (Shazeer et al., 2020).

    With scores J, `L = J P_l`, `W = normalize(L)` and `U = W P_w`, where the products sum over the
    heads. The paper's P_l is the weight `score_kernel` (N, N), and its P_w is `weight_kernel`
    (N, N). Column n produces head n. Both start as the identity.

    Masks apply after the first mixing. If heads have different masks, these apply again after the
    second mixing, so that a head cannot attend to keys that only other heads see.

    Args:
        num_heads: int, N, the number of heads.
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
    """A normalizer that also mixes the heads: scores before it, weights after it.

    Args:
        normalizer: the normalizer between the two mixings.
        heads: `TalkingHeads`, which holds the two matrices.
    """

    def __init__(self, normalizer, heads):
        self.normalizer, self.heads = normalizer, heads

    def __call__(self, scores, mask=None):
        weights = self.normalizer(_mix(scores, self.heads.score_kernel), mask)
        weights = _mix(weights, self.heads.weight_kernel)
        if mask is not None and mask.shape[1] != 1:
            weights = ops.multiply(weights, ops.cast(mask, weights.dtype))
        return weights


def _mix(x, kernel):
    """Mix the M heads of `x` (B, M, T, S) by `kernel` (M, N) into N heads: (B, N, T, S).

    On CPUs this is several times faster than an einsum.
    """
    heads, rows, columns = kernel.shape[1], *ops.shape(x)[2:]
    flat = ops.reshape(x, prepend_batch(x, x.shape[1], rows * columns))
    mixed = ops.matmul(ops.transpose(ops.cast(kernel, x.dtype)), flat)
    return ops.reshape(mixed, prepend_batch(x, heads, rows, columns))


class Sink(keras.layers.Layer):
    """A learned score per head that takes weight from the keys (gpt-oss model card, OpenAI, 2025).

    For scores s, `weights = exp(s) / (exp(sink) + sum exp(s))`. So a head can attend to almost
    nothing. The sink starts at 0, which is the same as `Softmax(plus_one=True)`.

    Args:
        num_heads: int, N, the number of heads.
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
    """A softmax with an additional learned score, a `Sink`, in its denominator.

    The temperature and the soft cap of the softmax do not apply to the sink.

    Args:
        softmax: a `Softmax`.
        sink: a `Sink`, the layer that holds the learned score of each head.
    """

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
