"""Attention that looks tokens of long ago up, beside those near by."""

import keras
from keras import ops

from keras_attention import checks, masks, normalizers, scope
from keras_attention.attention import memory
from keras_attention.attention.attend import attend
from keras_attention.attention.faiss_memory import FaissMemory
from keras_attention.attention.multi_head import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_attention")
class MemorizingAttention(MultiHeadAttention):
    """Local attention and the k best of a memory, mixed by a gate (Wu et al., 2022, section 3.1).

    The memory holds keys and values of earlier segments; no gradient flows into it. Each query
    attends to the `num_neighbors` keys of the memory that it scores highest, exactly, and to the
    segment as any `MultiHeadAttention` does. A learned gate per head g = sigmoid(b) mixes the two:
    `g · remembered + (1 - g) · local`. Where nothing is remembered yet, the gate is closed. After
    it has been searched, the memory takes in the segment and forgets the oldest tokens.

    The layer itself holds no state: `SegmentRecurrence` and `with_memory` carry the memory, and
    `FaissMemory` one that is larger than the model. Outside all of them nothing is remembered and
    this is a `MultiHeadAttention`.

    As in the paper, keys and queries are compared by their cosine (section 3.2), so that keys
    written by older weights stay in proportion; and positions, dropout and masks act on the local
    attention alone.

    Args:
        num_heads, key_dim: as in `MultiHeadAttention`, which all other arguments are passed to but
            `attention_axes`.
        memory_length: int M, how many tokens are remembered.
        num_neighbors: int k. Keys that score the same as the k-th are all attended to.
        score: a part of `keras_attention.scores`, of both attentions.
        gate_initializer: of b (N,).

    Call arguments: those of `MultiHeadAttention`. Query, key and value are of one sequence. The
    weights that are returned or recorded are those of the local attention.

    Masking: as in `MultiHeadAttention`; what `value_mask` calls padding is not remembered.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = keras.Input((None, 8))
    attention = ka.attention.MemorizingAttention(2, 4, memory_length=6, num_neighbors=3, name="far")
    recurrent = ka.attention.SegmentRecurrence(keras.Model(x, attention(x, x)), memory_length=0)

    segment = np.random.rand(1, 5, 8).astype("float32")
    first, memory = recurrent(segment)
    second, memory = recurrent(segment, memory)
    assert np.allclose(first, attention(segment, segment), atol=1e-6)  # nothing remembered yet
    assert not np.allclose(second, first)
    assert np.array_equal(memory["far_num_keys"], [6])
    ```
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        memory_length,
        num_neighbors=32,
        *,
        score="cosine",
        gate_initializer="zeros",
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, score=score, **kwargs)
        if self.attention_axes is not None:
            raise ValueError(
                f"MemorizingAttention(attention_axes={self.attention_axes}): a memory is of tokens "
                "in a row. Leave attention_axes out."
            )
        self.memory_length, self.num_neighbors = memory_length, num_neighbors
        checks.whole(self, "memory_length", "num_neighbors")
        self.gate_initializer = keras.initializers.get(gate_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if len(query_shape) != 3:
            raise ValueError(
                "MemorizingAttention takes (batch, length, features); received a query of shape "
                f"{tuple(query_shape)}."
            )
        self.memory_gate = self.add_weight(
            name="memory_gate", shape=(self.num_heads,), initializer=self.gate_initializer
        )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        segment_ids=None,
        **kwargs,
    ):
        if segment_ids is not None and _remembering():
            raise memory.packed(self, "segment_ids")
        with _Tokens(masks.all_of(value_mask, key_mask)):
            return super().call(
                query,
                value,
                key,
                query_mask=query_mask,
                value_mask=value_mask,
                key_mask=key_mask,
                attention_mask=attention_mask,
                return_attention_scores=return_attention_scores,
                training=training,
                use_causal_mask=use_causal_mask,
                segment_ids=segment_ids,
                **kwargs,
            )

    def _compute_attention(self, query, key, value, *args, **kwargs):
        local, weights = super()._compute_attention(query, key, value, *args, **kwargs)
        length = ops.shape(query)[1]  # what stands before the segment's own keys is remembered
        found = self._search(query, key[:, -length:], value[:, -length:])
        if found is None:
            return local, weights
        remembered, any_found = found
        gate = ops.sigmoid(ops.cast(self.memory_gate, "float32"))
        gate = ops.reshape(gate, (1, 1, -1, 1)) * any_found
        gate = ops.cast(gate, local.dtype)
        return gate * remembered + (1 - gate) * local, weights

    def _search(self, query, key, value):
        """What the memory answers (B, T, N, Hv), and whether it holds anything (B, 1, 1, 1).

        None without a memory. Afterwards the memory holds `key` and `value`, too.
        """
        tokens = scope.current(_Tokens).mask
        index = scope.current(FaissMemory)
        if index is not None:
            return index.search(self, query, key, value, tokens)
        carried = scope.current(scope.Memory)
        if carried is None:
            return None
        dtype = self.compute_dtype  # key.dtype, but on PyTorch a survey sees another there
        kept = carried.open(
            self,
            keys=((self.memory_length, *key.shape[2:]), dtype),
            values=((self.memory_length, *value.shape[2:]), dtype),
            num_keys=((), "int32"),
        )
        if kept is None:
            return None
        seen = memory.filled(kept["num_keys"], self.memory_length)
        remembered, _ = attend(
            query,
            ops.cast(kept["keys"], dtype),
            ops.cast(kept["values"], dtype),
            score=self.score,
            normalizer=normalizers.TopK(self.num_neighbors),
            attention_mask=masks.padding(seen),
        )
        before = [kept["keys"], kept["values"]]
        (keys, values), count = memory.append(before, kept["num_keys"], [key, value], tokens)
        kept.keep(keys=keys, values=values, num_keys=count)
        any_found = ops.cast(kept["num_keys"] > 0, "float32")
        return remembered, ops.reshape(any_found, (-1, 1, 1, 1))

    def get_config(self):
        return {
            **super().get_config(),
            "memory_length": self.memory_length,
            "num_neighbors": self.num_neighbors,
            "gate_initializer": keras.initializers.serialize(self.gate_initializer),
        }


def _remembering():
    return scope.current(scope.Memory) is not None or scope.current(FaissMemory) is not None


class _Tokens(scope.Scope):
    """Tells the innermost `MemorizingAttention` which of its keys are tokens, bool (B, T)."""

    def __init__(self, mask):
        self.mask = mask
