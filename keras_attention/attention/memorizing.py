"""Attention to a segment and, by nearest neighbours, to a memory of earlier ones."""

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
    """Local attention and the k best of a memory, mixed by a gate (Wu et al., 2022, section 3.1).

    The memory holds keys and values of earlier segments, without gradients. Each query attends to
    the `num_neighbors` keys of the memory that it scores highest, exactly, and to the segment as
    any `MultiHeadAttention` does. A learned gate g = sigmoid(b) of each head mixes the two:
    `g · remembered + (1 - g) · local`. With an empty memory the gate is closed. After the search,
    the segment joins the memory, and the oldest tokens leave it.

    The layer itself holds no state: `SegmentRecurrence` and `with_memory` carry the memory, and
    `FaissMemory` one that is larger than the model. Outside all of them nothing is remembered and
    this is a `MultiHeadAttention`.

    As in the paper, keys and queries are compared by their cosine (section 3.2), so that keys
    written by older weights stay in proportion. Positions, dropout and masks act only on the local
    attention.

    Args:
        num_heads, key_dim: as in `MultiHeadAttention`, which all other arguments are passed to but
            `attention_axes`.
        memory_length: int M, how many tokens are remembered.
        num_neighbors: int k. Keys that score the same as the k-th are all attended to.
        score: a part of `keras_attention.scores`, of both attentions.
        gate_initializer: of b (N,).

    Call arguments: those of `MultiHeadAttention`. Query, key and value are of one sequence. The
    weights that are returned or recorded are those of the local attention.

    Masking: as in `MultiHeadAttention`. Padding by `value_mask` is not remembered.

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
                f"MemorizingAttention(attention_axes={self.attention_axes}): a memory is of tokens "
                "in a row. Leave attention_axes out."
            )
        self.memory_length, self.num_neighbors = memory_length, num_neighbors
        checks.check_whole_numbers(self, "memory_length", "num_neighbors")
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

    def project_for_cache(self, value, key, visibility):
        new = self.project_key_value(value, key, visibility), visibility.key_mask
        scope.current(scope.Decoding).shared["new tokens", id(self)] = new  # not rotated
        return super().project_for_cache(value, key, visibility)

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        how = equation, visibility, return_weights, implementation
        local, weights = super().attend_heads(query, heads, *how)
        new = heads, visibility.key_mask
        if implementation == kernels.CACHED:
            new = scope.current(scope.Decoding).shared["new tokens", id(self)]
        answer = self._search(query, *new, visibility.segments)
        if answer is None:
            return local, weights
        remembered, any_found = answer
        gate = ops.sigmoid(ops.cast(self.memory_gate, "float32"))
        gate = ops.reshape(gate, (1, 1, -1, 1)) * any_found
        gate = ops.cast(gate, local.dtype)
        return gate * remembered + (1 - gate) * local, weights

    def _search(self, query, heads, tokens, segments):
        """Return the memory's answer (B, T, N, Hv), and whether it holds anything (B, 1, 1, 1).

        None without a memory. Afterwards the memory holds the segment's keys and values, too, of
        those that are `tokens` (B, S).
        """
        if scope.current(scope.SegmentMemory) is None and scope.current(FaissMemory) is None:
            return None
        if segments is not None:
            raise segment_memory.packed_text_error(self)
        length = ops.shape(query)[1]  # earlier segments may stand in front
        key, value = (heads[name][:, -length:] for name in ("key", "value"))
        tokens = tokens if tokens is None else tokens[:, -length:]
        tokens = masks.all_of(tokens, scope.is_token(length))  # not a prompt's padding
        index = scope.current(FaissMemory)
        if index is not None:
            return index.search(self, query, key, value, tokens)
        memory = scope.current(scope.SegmentMemory)
        slot = None if memory is None else memory.slot(self, "keys")
        if slot is None:
            return None
        dtype = self.compute_dtype  # key.dtype, but on PyTorch a traced tensor has another
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
        any_found = ops.cast(number > 0, "float32")
        return remembered, ops.reshape(any_found, (-1, 1, 1, 1))
