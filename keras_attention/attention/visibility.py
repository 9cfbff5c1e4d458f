"""`Visibility`: who sees whom in one call of attention."""

import dataclasses
import functools

from keras import ops

from keras_attention import masks
from keras_attention.attention import inputs


@dataclasses.dataclass(frozen=True, eq=False)
class Visibility:
    """Who sees whom: a query sees the keys that all of these fields allow.

    `AttentionLayer.call` makes it once. Layers and kernels hand it on unchanged, and nothing of
    shape (T, S) is made before a kernel asks for it.

    Args:
        mask: a part of `keras_attention.masks`, its name, its config or None.
        attention_mask: bool, True = may attend, broadcastable to (B, N, T, S); or None.
        query_mask: bool (B, T), False = padding: these queries get zero weights and output.
        key_mask: bool (B, S), False = padding, which no query sees. Unlike `attention_mask`,
            neither of the two costs a (T, S) tensor.
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S): where the tokens
            are, for masks and positions. None is 0, 1, 2, ...
        query_lengths, key_lengths: int (B,): tokens from there on are padding. Flash attention
            then needs no mask tensor. Beside `query_mask` and `key_mask` they are a promise that
            these say the same. One tensor for both, where queries and keys are the same tokens,
            lets a causal mask hide the padding.
        segments: a pair int (B, T), (B, S), the documents of queries and keys, as
            `masks.same_segment` takes them; or None.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    q, k, v = (np.random.rand(2, 5, 3, 8).astype("float32") for _ in range(3))
    tokens = np.array([[True] * 5, [True] * 3 + [False] * 2])
    visibility = ka.attention.Visibility("causal", query_mask=tokens, key_mask=tokens)
    _, weights = ka.attention.attend(q, k, v, mask=visibility)
    assert np.all(np.asarray(weights)[1, :, :, 3:] == 0)
    ```
    """

    mask: masks.Mask | None = None
    attention_mask: object = None
    query_mask: object = None
    key_mask: object = None
    query_positions: object = None
    key_positions: object = None
    query_lengths: object = None
    key_lengths: object = None
    segments: tuple | None = None

    def __post_init__(self):
        object.__setattr__(self, "mask", masks.get(self.mask))
        if self.attention_mask is not None:
            inputs.check_mask("Visibility", "attention_mask", self.attention_mask)
        object.__setattr__(self, "attention_mask", to_rank_four(self.attention_mask, "bool"))

    @functools.cached_property
    def tensor(self):
        """What all but `mask` and `query_mask` allow, broadcastable to (B, N, T, S); or None."""
        if self.segments is None:
            return self.tensor_without_segments
        return masks.all_of(self.tensor_without_segments, masks.same_segment(*self.segments))

    @functools.cached_property
    def tensor_without_segments(self):
        """What `attention_mask` and `key_mask` allow, broadcastable to (B, N, T, S); or None."""
        return masks.all_of(self.attention_mask, masks.padding(self.key_mask))

    def positions(self, rows, columns):
        """Return the positions of a block, cut by the pieces `rows` and `columns` of the axes."""
        return rows.positions(self.query_positions), columns.positions(self.key_positions)

    def allows(self, i, j, tensor):
        """Return the mask of a block, broadcastable to (B, N, rows, columns), or None for all.

        Args:
            i, j: from `positions`. tensor: the cut of `self.tensor` for this block.
        """
        return masks.all_of(masks.materialize(self.mask, i, j), tensor)

    @property
    def positions_are_indices(self):
        """Whether no positions are given: a part of an axis is then a range of positions."""
        return self.query_positions is None and self.key_positions is None

    def band(self):
        """Return the `band()` that indices and lengths describe exactly, or None."""
        if self.segments is not None or self.attention_mask is not None:
            return None
        if self.key_mask is not None and self.key_lengths is None:
            return None
        if self.mask is None:
            return None, None
        return self.mask.band() if self.mask.is_band and self.positions_are_indices else None

    def hide_padded_queries(self):
        """Put `query_mask` into `attention_mask`, so that weights of padding are 0."""
        if self.query_mask is None:
            return self
        rows = ops.cast(self.query_mask, "bool")
        rows = ops.expand_dims(ops.expand_dims(rows, axis=1), axis=3)
        return Visibility(
            self.mask,
            masks.all_of(self.tensor, rows),
            query_positions=self.query_positions,
            key_positions=self.key_positions,
        )

    def with_lengths_of_masks(self):
        """Add lengths, where padding comes last and `key_mask` is the only tensor."""
        others = self.attention_mask is not None or self.segments is not None
        if self.key_mask is None or others:
            return self
        keys = queries = _count_tokens(self.key_mask)
        if self.query_mask is not self.key_mask:
            queries = None if self.query_mask is None else _count_tokens(self.query_mask)
        return dataclasses.replace(self, query_lengths=queries, key_lengths=keys)

    def with_masks_of_lengths(self, queries, keys):
        """Add the masks that lengths stand for, of T = `queries` and S = `keys`."""
        masks_of_lengths = {}
        if self.query_lengths is not None and self.query_mask is None:
            masks_of_lengths["query_mask"] = _mask_of_lengths(self.query_lengths, queries)
        if self.key_lengths is not None and self.key_mask is None:
            masks_of_lengths["key_mask"] = _mask_of_lengths(self.key_lengths, keys)
        return dataclasses.replace(self, **masks_of_lengths)


def _mask_of_lengths(lengths, size):
    """Return which of `size` tokens come before `lengths` (B,): bool (B, size)."""
    index = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    return index < ops.expand_dims(ops.cast(lengths, "int32"), axis=1)


def _count_tokens(mask):
    """Return how many tokens each row of a mask (B, T) has: int32 (B,)."""
    return ops.sum(ops.cast(mask, "int32"), axis=1)


def to_rank_four(x, dtype=None):
    """Return `x`, which broadcasts to (B, N, T, S), as a tensor of rank four. None is None."""
    if x is None:
        return None
    x = ops.convert_to_tensor(x)
    x = x if dtype is None else ops.cast(x, dtype)
    while len(x.shape) < 4:
        x = ops.expand_dims(x, axis=0)
    return x
