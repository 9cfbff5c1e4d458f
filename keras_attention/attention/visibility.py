"""`Visibility`: the masks and positions that determine which queries see which keys in a call."""

import dataclasses
import functools

from keras import ops

from keras_attention import masks
from keras_attention.attention import inputs


@dataclasses.dataclass(frozen=True, eq=False)
class Visibility:
    """The masks and positions of one call. A query sees a key if all masks allow it.

    `AttentionLayer.call` creates it once. Kernels compute (T, S) masks from it, either whole or
    block by block.

    Args:
        mask: a mask of `keras_attention.masks`, its name, its config, or None.
        attention_mask: bool, True = may attend, broadcastable to (B, N, T, S), or None.
        query_mask: bool (B, T), False = padding, or None. The weights and outputs of padded queries
            are zero.
        key_mask: bool (B, S), False = padding, or None. Padded keys are hidden from all queries.
            Unlike an `attention_mask`, `query_mask` and `key_mask` need no (T, S) tensor.
        query_positions: int (T,) or (B, T), for masks and position encodings. None means 0, 1, 2,
            ...
        key_positions: int (S,) or (B, S), the same for keys.
        query_lengths: int (B,), the number of query tokens before padding, or None. Flash attention
            uses lengths instead of a mask tensor. If masks are given too, they must hide the same
            padding, which is not checked. In self-attention, pass the same tensor as `key_lengths`:
            a causal mask then hides the padding.
        key_lengths: int (B,), the number of keys before padding, or None.
        segments: a pair of int tensors (B, T) and (B, S), the number (1, 2, ...) of the document of
            each query and key, 0 for padding, or None. A query sees only keys of its own document.

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
        """Return all masks except `mask` and `query_mask` as one bool tensor (B, N, T, S).

        Axes may have size 1. The result is None if all these masks are None.
        """
        if self.segments is None:
            return self.tensor_without_segments
        return masks.all_of(self.tensor_without_segments, masks.same_segment(*self.segments))

    @functools.cached_property
    def tensor_without_segments(self):
        """Return `tensor` without the mask for packed documents (`segments`)."""
        return masks.all_of(self.attention_mask, masks.padding(self.key_mask))

    def positions(self, rows, columns):
        """Return the positions of a block's queries and of its keys.

        `rows` and `columns` are the block's ranges of the query and key axes (see
        `kernels/axis_pieces.py`).
        """
        return rows.positions(self.query_positions), columns.positions(self.key_positions)

    def allows(self, i, j, tensor):
        """Return the mask of a block, broadcastable to (B, N, rows, columns).

        None means that all pairs are allowed.

        Args:
            i: int (rows,) or (B, rows), positions of the block's queries, from `positions`.
            j: int (columns,) or (B, columns), positions of the block's keys.
            tensor: the block of `self.tensor`, or None.
        """
        return masks.all_of(masks.materialize(self.mask, i, j), tensor)

    @property
    def positions_are_indices(self):
        """Return whether no positions are given, so that the position of a token is its index."""
        return self.query_positions is None and self.key_positions is None

    def band(self):
        """Return a band (left, right) that is equivalent to all masks, together with the lengths.

        In a band, a query sees the keys from `left` before it to `right` after it. None as a bound
        means no bound. Return None if no band is equivalent.
        """
        if self.segments is not None or self.attention_mask is not None:
            return None
        if self.key_mask is not None and self.key_lengths is None:
            return None
        if self.mask is None:
            return None, None
        return self.mask.band() if self.mask.is_band and self.positions_are_indices else None

    def hide_padded_queries(self):
        """Return a copy whose `attention_mask` includes `query_mask`: padded queries see no key."""
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
        """Return a copy with lengths computed from `key_mask` and `query_mask`.

        If there are other mask tensors, lengths are useless, and the result is this object.
        """
        if self.key_mask is None or self.attention_mask is not None or self.segments is not None:
            return self
        keys = queries = _count_tokens(self.key_mask)
        if self.query_mask is not self.key_mask:
            queries = None if self.query_mask is None else _count_tokens(self.query_mask)
        return dataclasses.replace(self, query_lengths=queries, key_lengths=keys)

    def with_masks_of_lengths(self, queries, keys):
        """Return a copy with masks computed from lengths, where masks are missing.

        `queries` and `keys` are the lengths T and S.
        """
        masks_of_lengths = {}
        if self.query_lengths is not None and self.query_mask is None:
            masks_of_lengths["query_mask"] = _mask_of_lengths(self.query_lengths, queries)
        if self.key_lengths is not None and self.key_mask is None:
            masks_of_lengths["key_mask"] = _mask_of_lengths(self.key_lengths, keys)
        return dataclasses.replace(self, **masks_of_lengths)


def _mask_of_lengths(lengths, size):
    """Return a mask that is True for the first `lengths` (B,) tokens of each row: (B, size)."""
    index = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    return index < ops.expand_dims(ops.cast(lengths, "int32"), axis=1)


def _count_tokens(mask):
    """Count the tokens in each row of a mask (B, T): int32 (B,)."""
    return ops.sum(ops.cast(mask, "int32"), axis=1)


def to_rank_four(x, dtype=None):
    """Convert `x` to a tensor of `dtype` with four axes. New axes come first. None returns None."""
    if x is None:
        return None
    x = ops.convert_to_tensor(x)
    x = x if dtype is None else ops.cast(x, dtype)
    while len(x.shape) < 4:
        x = ops.expand_dims(x, axis=0)
    return x
