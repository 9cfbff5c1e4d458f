"""Pieces of the query and key axes. Kernels use them to divide the scores into blocks.

A piece is a set of indices of an axis. Its methods are:

- `piece.take(x, axis)` returns the piece of an axis of the tensor `x`. An axis of length 1 is
  broadcast, so it is returned unchanged.
- `piece.positions(positions)` returns the positions of the piece's tokens, taken from `positions`
  (T,) or (B, T), or from 0, 1, 2, ... if that is None.
"""

import dataclasses

import numpy as np
from keras import ops


@dataclasses.dataclass(frozen=True)
class AxisRange:
    """A contiguous piece of a query or key axis: the `size` indices that begin at `start`."""

    start: int
    size: int

    @property
    def end(self):
        return self.start + self.size

    def take(self, x, axis):
        if x is None or x.shape[axis] in (1, self.size):
            return x
        if x.shape[axis] is None:  # the length may be 1 at run time
            indices = ops.minimum(ops.arange(self.start, self.end), ops.shape(x)[axis] - 1)
            return ops.take(x, indices, axis=axis)
        return x[(slice(None),) * axis + (slice(self.start, self.end),)]

    def positions(self, positions=None):
        if positions is None:
            return ops.arange(self.start, self.end, dtype="int32")
        return self.take(ops.convert_to_tensor(positions), len(positions.shape) - 1)


@dataclasses.dataclass(frozen=True)
class WholeAxis:
    """A piece that is a whole query or key axis. Its `size` is an int, or a tensor if dynamic."""

    size: object

    def take(self, x, axis):
        return x

    def positions(self, positions=None):
        return ops.arange(self.size, dtype="int32") if positions is None else positions


@dataclasses.dataclass(frozen=True)
class AxisIndices:
    """A piece that consists of single indices of a query or key axis, a tuple of ints."""

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
    """A piece that consists of single indices of a key axis, followed by a contiguous range."""

    indices: AxisIndices
    range: AxisRange

    def take(self, x, axis):
        if x is None or x.shape[axis] == 1:
            return x
        return ops.concatenate([self.indices.take(x, axis), self.range.take(x, axis)], axis=axis)

    def positions(self, positions=None):
        pieces = [piece.positions(positions) for piece in (self.indices, self.range)]
        return ops.concatenate(pieces, axis=len(pieces[0].shape) - 1)

    def distinct(self):
        """Return a mask that hides duplicates: single indices that the range contains too.

        The mask is bool (1, 1, 1, size of this piece), or None if there are no duplicates.
        """
        inside = np.array(
            [self.range.start <= index < self.range.end for index in self.indices.indices]
        )
        if not inside.any():
            return None
        distinct = np.concatenate([~inside, np.ones(self.range.size, "bool")])
        return ops.convert_to_tensor(distinct.reshape(1, 1, 1, -1))


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor that kernels cut into blocks, together with its axes of queries and keys.

    Args:
        tensor: the whole tensor.
        row_axis: int, its axis of queries, or None if it has none.
        column_axis: int, its axis of keys, or None if it has none.
    """

    tensor: object
    row_axis: int | None = None
    column_axis: int | None = None

    def cut(self, rows, columns, tensor=None):
        """Return the part of the tensor that belongs to the block of `rows` and `columns`.

        Both are pieces: `rows` of the query axis, and `columns` of the key axis.

        If `tensor` is given, it is cut in place of the operand's own tensor.
        """
        x = self.tensor if tensor is None else tensor
        x = x if self.row_axis is None else rows.take(x, self.row_axis)
        return x if self.column_axis is None else columns.take(x, self.column_axis)
