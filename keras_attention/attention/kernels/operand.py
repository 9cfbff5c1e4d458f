"""What the slices of a computation are cut from."""

import dataclasses


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
