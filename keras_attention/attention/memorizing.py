"""Attention to a segment, and to the nearest neighbors in a memory of earlier segments."""

import keras
from keras import ops

from keras_attention import masks, normalizers
from keras_attention.attention import kernels, segment_memory
from keras_attention.attention.attend import attend
from keras_attention.attention.faiss_memory import FaissMemory
from keras_attention.attention.multi_head import MultiHeadAttention
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, scope


@keras.saving.register_keras_serializable(package="keras_attention")
class MemorizingAttention(MultiHeadAttention):
    """Attention to a segment and to the k best keys of a memory (Wu et al., 2022, section 3.1).

    `output = g · remembered + (1 - g) · local` with a gate g = sigmoid(b), where b is learned for
    each head. `local` is the output of `MultiHeadAttention` over the segment. `remembered` is the
    output of attention to the keys in the memory: each query attends to the `num_neighbors` keys
    with the highest scores, which an exact search finds. If the memory is empty, g is 0. The memory
    contains keys and values of earlier segments, and no gradient flows into it. After each search,
    the keys and values of this segment are added, and the oldest ones are dropped.

    `SegmentRecurrence` and `with_memory` carry the memory from call to call. `FaissMemory` stores a
    larger memory outside the model. Without one of these, the layer has no memory and computes the
    same as `MultiHeadAttention`.

    As in the paper, the default score is the cosine (section 3.2), because keys in the memory were
    computed with earlier weights and may have different norms. Position encodings, dropout and
    masks apply only to the local attention.

    Args:
        num_heads: int, N, the number of heads.
        key_dim: int, H, the size of a query or key head.
        kwargs: other arguments of `MultiHeadAttention`, except `attention_axes`.
        memory_length: int M, the number of tokens in the memory.
        num_neighbors: int k, the number of keys in the memory that a query attends to. Keys with
            the same score as the k-th are included.
        score: a score of `keras_attention.scores`, for both attentions.
        gate_initializer: initializer of b (N,).

    Call arguments: those of `MultiHeadAttention`, for self-attention. The returned and recorded
    weights are those of the local attention.

    Masking: the local attention applies all masks of the call. Tokens that `value_mask` marks as
    padding are not stored in the memory.

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
    assert np.allclose(first, attention(segment, segment), atol=1e-6)  # the memory was empty
    assert not np.allclose(second, first)
    assert np.array_equal(memory["far_num_keys"], [6])
    ```
    """

    weight_axes = {"memory_gate": ("heads",)}
    own_arguments = ("memory_length", "num_neighbors", "gate_initializer")

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
                f"MemorizingAttention(attention_axes={self.attention_axes}): a memory needs tokens "
                "in one sequence. Leave attention_axes out."
            )
        self.memory_length, self.num_neighbors = memory_length, num_neighbors
        checks.check_whole_numbers(self, "memory_length", "num_neighbors")
        self.gate_initializer = keras.initializers.get(gate_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if len(query_shape) != 3:
            raise ValueError(
                "MemorizingAttention takes (batch, length, features), but received a query of "
                f"shape {tuple(query_shape)}. Reshape it."
            )
        self.memory_gate = self.add_weight(
            name="memory_gate", shape=(self.num_heads,), initializer=self.gate_initializer
        )

    def project_for_cache(self, value, key, visibility):
        new = self.project_key_value(value, key, visibility), visibility.key_mask
        scope.current(scope.Decoding).shared["new tokens", id(self)] = new  # unrotated heads
        return super().project_for_cache(value, key, visibility)

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        how = equation, visibility, return_weights, implementation
        local, weights = super().attend_heads(query, heads, *how)
        new = heads, visibility.key_mask
        if implementation == kernels.CACHED:
            new = scope.current(scope.Decoding).shared["new tokens", id(self)]
        result = self._search(query, *new, visibility.segments)
        if result is None:
            return local, weights
        remembered, has_memory = result
        gate = ops.sigmoid(ops.cast(self.memory_gate, "float32"))
        gate = ops.reshape(gate, (1, 1, -1, 1)) * has_memory
        gate = ops.cast(gate, local.dtype)
        return gate * remembered + (1 - gate) * local, weights

    def _search(self, query, heads, tokens, segments):
        """Attend to the memory, then add the segment's keys and values to it.

        Args:
            query: (B, T, N, H), unrotated.
            heads: dict of the segment's keys and values (B, S, K, H).
            tokens: bool (B, S), False for padding, which is not added. None adds all tokens.
            segments: must be None, because a memory does not work with packed documents.

        Returns:
            The output (B, T, N, Hv), and a tensor (B, 1, 1, 1) that is 1.0 for rows whose memory
            had tokens, and 0.0 for others. None without a memory.
        """
        if scope.current(scope.SegmentMemory) is None and scope.current(FaissMemory) is None:
            return None
        if segments is not None:
            raise segment_memory.packed_text_error(self)
        length = ops.shape(query)[1]  # keys of earlier segments may precede those of the segment
        key, value = (heads[name][:, -length:] for name in ("key", "value"))
        tokens = tokens if tokens is None else tokens[:, -length:]
        tokens = masks.all_of(tokens, scope.is_token(length))  # exclude a prompt's padding
        index = scope.current(FaissMemory)
        if index is not None:
            return index.search(self, query, key, value, tokens)
        memory = scope.current(scope.SegmentMemory)
        slot = None if memory is None else memory.slot(self, "keys")
        if slot is None:
            return None
        dtype = self.compute_dtype  # not key.dtype, which is wrong when PyTorch traces
        if slot.tracing:
            slot.declare(
                keys=scope.State((self.memory_length, *key.shape[2:]), dtype),
                values=scope.State((self.memory_length, *value.shape[2:]), dtype),
                num_keys=scope.State((), "int32"),
            )
            return None
        filled = segment_memory.filled_mask(slot["num_keys"], self.memory_length)
        remembered, _ = attend(
            query,
            ops.cast(slot["keys"], dtype),
            ops.cast(slot["values"], dtype),
            score=self.score,
            normalizer=normalizers.TopK(self.num_neighbors),
            mask=Visibility(key_mask=filled),
        )
        before, number = [slot["keys"], slot["values"]], slot["num_keys"]
        (keys, values), count = segment_memory.append_tokens(before, number, [key, value], tokens)
        slot.update(keys=keys, values=values, num_keys=count)
        has_memory = ops.cast(number > 0, "float32")
        return remembered, ops.reshape(has_memory, (-1, 1, 1, 1))
