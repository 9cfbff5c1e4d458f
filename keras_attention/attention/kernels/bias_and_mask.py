"""Bias and mask of any block of the scores, and the pieces of axes that blocks are cut with.

A piece of an axis has `take(x, axis)`, its part of an axis of `x`, where an axis of length 1 stands
for every index and stays; and `positions(given)`, where its tokens are: `given` (T,) or (B, T), or,
for None, 0, 1, 2, ...
"""

import dataclasses

import numpy as np
from keras import ops

from keras_attention import masks


@dataclasses.dataclass(frozen=True)
class BiasAndMask:
    """What is added to the scores of all (T, S) pairs, and which pairs the mask allows.

    Nothing of shape (T, S) is made before a block asks for it: a kernel that works in slices never
    holds the whole.

    Args:
        mask: a mask or None. position: a position that biases, or None.
        attention_mask: bool, True = may attend, broadcastable to (B, N, T, S), of rank 4; or None.
        bias: float, the same shape; or None.
        segments: a pair int (B, T), (B, S), the documents of queries and of keys (`same_segment`);
            or None.
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S); None is
            0, 1, 2, ...
        query_lengths, key_lengths: int32 (B,), or None: where given, `attention_mask` hides the
            keys from there on and nothing else, and what queries from there on give is not used.
            One tensor for both where queries and keys are the same tokens.
        zero: an int tensor of value 0, or None. Added to positions, it keeps a compiler from making
            constants of the masks of all blocks, which together have shape (T, S) again.
    """

    mask: object = None
    position: object = None
    attention_mask: object = None
    bias: object = None
    query_positions: object = None
    key_positions: object = None
    query_lengths: object = None
    key_lengths: object = None
    segments: tuple | None = None
    zero: object = None

    def block(self, rows, columns, query, key, bias=None):
        """Bias and mask of a block, broadcastable to (B, N, rows, columns), or None for either.

        Args:
            rows, columns: the pieces of the axes that queries and keys are cut with.
            query, key: those of the block, (B, rows, N, H) and (B, columns, K, H), rotated.
            bias: the block of `self.bias`, cut by the caller.
        """
        i, j = self._positions(rows, columns)
        if self.position is not None:
            relative = self.position.bias(i, j, query, key)
            if bias is None or relative is None:
                bias = relative if bias is None else bias
            else:
                bias = bias + relative  # not ops.add: see tests/test_traps.py
        given = columns.take(rows.take(self.attention_mask, 2), 3)
        if self.segments is not None:
            queries, keys = self.segments
            segments = masks.same_segment(rows.take(queries, 1), columns.take(keys, 1))
            given = masks.all_of(given, segments)
        return bias, masks.all_of(masks.materialize(self.mask, i, j), given)

    def values(self, rows, columns, weights):
        """What the position adds to the output of a block (B, rows, N, Hv), or None.

        `weights` (B, N, rows, columns) are those of the block.
        """
        if self.position is None:
            return None
        i, j = self._positions(rows, columns)
        return self.position.values(i, j, weights)

    @property
    def positions_are_indices(self):
        """Whether no positions are given: a part of an axis is then a range of positions."""
        return self.query_positions is None and self.key_positions is None

    def exact_band(self):
        """The `band()` that the mask part is, over indices, or None where it is no band."""
        if self.segments is not None:
            return None
        if self.mask is None:
            return None, None
        return self.mask.band() if self.mask.is_band and self.positions_are_indices else None

    def _positions(self, rows, columns):
        i, j = rows.positions(self.query_positions), columns.positions(self.key_positions)
        return (i, j) if self.zero is None else (i + self.zero, j + self.zero)


@dataclasses.dataclass(frozen=True)
class AxisRange:
    """The `size` indices from `start` on, ints."""

    start: int
    size: int

    @property
    def end(self):
        return self.start + self.size

    def take(self, x, axis):
        if x is None or x.shape[axis] in (1, self.size):
            return x
        if x.shape[axis] is None:  # it may yet turn out to be 1
            indices = ops.minimum(ops.arange(self.start, self.end), ops.shape(x)[axis] - 1)
            return ops.take(x, indices, axis=axis)
        return x[(slice(None),) * axis + (slice(self.start, self.end),)]

    def positions(self, given=None):
        if given is None:
            return ops.arange(self.start, self.end, dtype="int32")
        return self.take(ops.convert_to_tensor(given), len(given.shape) - 1)


@dataclasses.dataclass(frozen=True)
class WholeAxis:
    """A whole axis; `size` may be unknown, a tensor."""

    size: object

    def take(self, x, axis):
        return x

    def positions(self, given=None):
        return ops.arange(self.size, dtype="int32") if given is None else given


@dataclasses.dataclass(frozen=True)
class AxisIndices:
    """Single indices, a tuple of ints."""

    indices: tuple

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.take(x, self.indices, axis=axis)

    def positions(self, given=None):
        if given is None:
            return ops.convert_to_tensor(self.indices, "int32")
        return ops.take(given, self.indices, axis=len(given.shape) - 1)


@dataclasses.dataclass(frozen=True)
class IndicesAndRange:
    """Single indices, then a range; `distinct` marks each index once."""

    indices: AxisIndices
    range: AxisRange

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.concatenate([self.indices.take(x, axis), self.range.take(x, axis)], axis=axis)

    def positions(self, given=None):
        both = [piece.positions(given) for piece in (self.indices, self.range)]
        return ops.concatenate(both, axis=len(both[0].shape) - 1)

    def distinct(self):
        """Bool (1, 1, 1, indices + range), False where the range repeats an index, or None."""
        inside = np.array(
            [self.range.start <= index < self.range.end for index in self.indices.indices]
        )
        if not inside.any():
            return None
        once = np.concatenate([~inside, np.ones(self.range.size, "bool")])
        return ops.convert_to_tensor(once.reshape(1, 1, 1, -1))


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor that blocks are cut from: its axis of queries and its axis of keys, or None."""

    tensor: object
    row_axis: int | None = None
    column_axis: int | None = None

    def cut(self, rows, columns, tensor=None):
        """The cut for a block, from `tensor` in place of its own where one is given."""
        x = self.tensor if tensor is None else tensor
        x = x if self.row_axis is None else rows.take(x, self.row_axis)
        return x if self.column_axis is None else columns.take(x, self.column_axis)
