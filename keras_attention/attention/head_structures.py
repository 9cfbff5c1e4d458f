"""What multi-head attention may have between its projections, put together."""

import keras

from keras_attention.attention.head_norm import head_norm
from keras_attention.attention.memory_slots import MemorySlots
from keras_attention.attention.sink import Sink
from keras_attention.attention.talking_heads import TalkingHeads


class HeadStructures(keras.layers.Layer):
    """Normalized queries and keys, memory slots, talking heads and a sink, or any of them.

    In a row of scores they act in this order: slots are appended to it, heads talk, the sink is
    in the denominator, heads talk again.

    Args:
        query_heads: (N, H), of the queries. value_heads: (K, Hv), of the values.
        qk_norm, sink, num_memory_slots, talking_heads: as in `MultiHeadAttention`.
    """

    def __init__(
        self, query_heads, value_heads, qk_norm, sink, num_memory_slots, talking_heads, **kwargs
    ):
        super().__init__(**kwargs)
        (num_heads, self.key_dim), (num_key_value_heads, value_dim) = query_heads, value_heads
        dtype = self.dtype_policy
        self.query_norm = self.key_norm = self.sink = self.slots = self.talking_heads = None
        if qk_norm:
            self.query_norm = head_norm(qk_norm, dtype=dtype, name="query_norm")
            self.key_norm = head_norm(qk_norm, dtype=dtype, name="key_norm")
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
        """Queries (B, T, N, H) as positions and scores get them."""
        return query if self.query_norm is None else self.query_norm(query)

    def normalize_key(self, key):
        """Keys (B, S, K, H) as positions and scores get them."""
        return key if self.key_norm is None else self.key_norm(key)

    def around(self, normalizer, score, query, value, cached=False):
        """What to attend with in the place of `normalizer` and `value`.

        `query` (B, T, N, H) has not been rotated; `value` is (B, S, K, Hv), or (B, K, S, Hv) if it
        is `cached`.
        """
        if self.sink is not None:
            normalizer = self.sink.around(normalizer)
        if self.talking_heads is not None:
            normalizer = self.talking_heads.around(normalizer)
        if self.slots is not None:
            normalizer = self.slots.around(normalizer, score, query)
            value = self.slots.append_to(value, cached)
        return normalizer, value

    def beside_slots(self, position):
        """`position`, which is of the tokens alone."""
        return position if None in (self.slots, position) else self.slots.beside(position)
