"""Keys and values that are learned, not computed from tokens."""

import keras
from keras import ops

from keras_attention.normalizers.base import Normalizer
from keras_attention.positions.base import Position


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
        """Values (B, S, K, Hv) with those of the slots after them, (B, S + M, K, Hv)."""
        slots = ops.cast(self.values, value.dtype)
        slots = ops.transpose(slots, (1, 0, 2)) if heads_first else slots
        slots = ops.tile(ops.expand_dims(slots, axis=0), (ops.shape(value)[0], 1, 1, 1))
        return ops.concatenate([value, slots], axis=2 if heads_first else 1)

    def around(self, normalizer, score, query):
        """`normalizer`, for rows to which the slots' scores are appended.

        `query` (B, T, N, H) has not been rotated: the score of a slot is the same wherever the
        query is.
        """
        return _WithSlots(normalizer, self._scores(score, query))

    def beside(self, position):
        """`position`, for weights after which come those of the slots."""
        return _BesideSlots(position, self.num_slots)

    def _scores(self, score, query):
        """(B, N, T, M)."""
        heads, size = query.shape[2:]
        keys = ops.cast(self.keys, query.dtype)
        keys = ops.repeat(keys, heads // self.num_heads, axis=1)
        # All queries as one long example: one copy of the slots serves them all.
        scores = score(ops.reshape(query, (1, -1, heads, size)), ops.expand_dims(keys, axis=0))
        scores = ops.reshape(scores, (heads, -1, ops.shape(query)[1], self.num_slots))
        return ops.transpose(scores, (1, 0, 2, 3))


class _WithSlots(Normalizer):
    def __init__(self, normalizer, slots):
        self.normalizer, self.slots = normalizer, slots

    def __call__(self, scores, mask=None):
        row = ops.concatenate([scores, ops.cast(self.slots, scores.dtype)], axis=-1)
        if mask is not None:
            mask = _open(mask, ops.shape(scores)[-1], self.slots.shape[-1])
        return self.normalizer(row, mask)


class _BesideSlots(Position):
    def __init__(self, position, slots):
        self.position, self.slots, self.roles = position, slots, position.roles

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
    """A mask (..., `length` or 1) with `slots` columns of True after it."""
    ones = [1] * (len(mask.shape) - 1)
    allowed = ops.cast(mask, "float32") + ops.zeros((*ones, length))
    return ops.cast(
        ops.pad(allowed, [[0, 0] for _ in ones] + [[0, slots]], constant_values=1.0), "bool"
    )
