"""Pieces of the axes of queries and keys, with which kernels cut the scores into blocks.

A piece has `take(x, axis)`, its part of an axis of `x`, where an axis of length 1 stands for every
index and stays; and `positions(positions)`, where its tokens are: their part of `positions` (T,) or
(B, T), or 0, 1, 2, ... for None.
"""

import dataclasses

import numpy as np
from keras import ops


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

    def positions(self, positions=None):
        if positions is None:
            return ops.arange(self.start, self.end, dtype="int32")
        return self.take(ops.convert_to_tensor(positions), len(positions.shape) - 1)


@dataclasses.dataclass(frozen=True)
class WholeAxis:
    """A whole axis; `size` may be unknown, a tensor."""

    size: object

    def take(self, x, axis):
        return x

    def positions(self, positions=None):
        return ops.arange(self.size, dtype="int32") if positions is None else positions


@dataclasses.dataclass(frozen=True)
class AxisIndices:
    """Single indices, a tuple of ints."""

    indices: tuple

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.take(x, self.indices, axis=axis)

    def positions(self, positions=None):
        if positions is None:
            return ops.convert_to_tensor(self.indices, "int32")
        return ops.take(positions, self.indices, axis=len(positions.shape) - 1)


@dataclasses.dataclass(frozen=True)
class IndicesAndRange:
    """Single indices, then a range; `distinct` marks each index once."""

    indices: AxisIndices
    range: AxisRange

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.concatenate([self.indices.take(x, axis), self.range.take(x, axis)], axis=axis)

    def positions(self, positions=None):
        both = [piece.positions(positions) for piece in (self.indices, self.range)]
        return ops.concatenate(both, axis=len(both[0].shape) - 1)

    def distinct(self):
        """Return bool (1, 1, 1, indices + range), False where the range repeats an index."""
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
        """Return the cut for a block, from `tensor` in place of its own where one is given."""
        x = self.tensor if tensor is None else tensor
        x = x if self.row_axis is None else rows.take(x, self.row_axis)
        return x if self.column_axis is None else columns.take(x, self.column_axis)
