"""Exact attention, one slice of queries at a time: no pass ever holds all (T, S) scores."""

import copy
import functools

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.axis_pieces import IndicesAndRange, Operand
from keras_attention.core.recompute import recompute


def refuses(lengths, equation, visibility):
    """Return why no kernel that works in slices can compute an attention, or None."""
    return "the lengths are not known when the model is traced" if None in lengths else None


def attend_in_slices(query, key, value, equation, visibility, slices, global_keys=None):
    """Return the output of `dense`, computed block by block.

    A block's weights live until its output is there; the backward pass computes them again. So
    memory is that of one block, in both passes, and the time that of the blocks alone.

    Args:
        query, key, value, equation, visibility: as `dense`.
        slices: list of (rows, columns), each an `AxisRange`: which keys each slice of the queries
            may attend to at most. Together the rows are all queries in order, and neither starts
            nor ends of the columns ever go back.
        global_keys: `AxisIndices`, further keys that all queries may attend to, or None.

    Returns:
        (B, T, N, Hv).
    """
    if keras.backend.backend() == "tensorflow":
        from keras_attention.attention.kernels import sliced_tensorflow, softmax_tensorflow

        if sliced_tensorflow.keeps_order():  # the form for CPUs, whose slices wait for no numbers
            output = softmax_tensorflow.attend_in_slices(
                query, key, value, equation, visibility, slices, global_keys
            )
            if output is not None:
                return ops.transpose(output, (0, 2, 1, 3))
    block = Block(equation, visibility, global_keys)
    operands = block.operands(query, key, value)
    if keras.backend.backend() == "tensorflow":
        output = sliced_tensorflow.compute_slices(block, operands, slices)
    else:
        outputs = []
        for rows, columns in slices:
            compute = recompute(functools.partial(block, rows=rows, columns=columns))
            outputs.append(compute(*[operand.cut(rows, columns) for operand in operands]))
        output = ops.concatenate(outputs, axis=2)
    return ops.transpose(output, (0, 2, 1, 3))


class Block:
    """Computes attention for the queries of one slice: a function of what is cut for it alone."""

    def __init__(self, equation, visibility, global_keys):
        self.equation, self.visibility, self.global_keys = equation, visibility, global_keys
        self.mask = visibility.tensor  # made here: blocks are computed twice, and in inner graphs
        self.zero = None

    def operands(self, query, key, value):
        """Return what blocks are cut from, in the order in which a call takes the cuts."""
        self.folds = self.equation.score.fold is not None
        self.looks = self.equation.position_biases or not self.folds
        operands, bias = [], self.equation.bias
        if self.folds:
            # (B, N, T, H), (B, K, H, S)
            left, right = dense.folded(self.equation.score, query, key)
            operands += [Operand(left, row_axis=2), *self._keys(right, 3)]
        operands += self._keys(ops.transpose(value, (0, 2, 1, 3)), 2)
        if self.looks:
            operands += [Operand(query, row_axis=1), *self._keys(key, 1)]
        if bias is not None:
            row_axis, column_axis = (axis if bias.shape[axis] != 1 else None for axis in (2, 3))
            operands += [Operand(bias, row_axis, column_axis)]
            if self.global_keys is not None:
                operands += [Operand(self.global_keys.take(bias, 3), row_axis)]
        return operands

    def with_zero(self, zero):
        """Return the same block, with `zero`, an int tensor of value 0, added to its positions.

        It keeps a compiler from making constants of the masks of all blocks, which together have
        shape (T, S) again.
        """
        block = copy.copy(self)
        block.zero = zero
        return block

    def _keys(self, x, axis):
        """Return keys in the columns, and the keys that all see."""
        seen = [] if self.global_keys is None else [Operand(self.global_keys.take(x, axis))]
        return [Operand(x, column_axis=axis), *seen]

    def __call__(self, *cuts, rows, columns):
        """Return (B, N, rows, Hv)."""
        cuts = list(cuts)
        left = cuts.pop(0) if self.folds else None
        right = self._join(cuts, 3) if self.folds else None
        value = self._join(cuts, 2)
        query = cuts.pop(0) if self.looks else None
        key = self._join(cuts, 1) if self.looks else None
        bias = None if self.equation.bias is None else self._join(cuts, 3)
        once = None
        if self.global_keys is not None:
            columns = IndicesAndRange(self.global_keys, columns)
            once = columns.distinct()
        i, j = self.visibility.positions(rows, columns)
        if self.zero is not None:
            i, j = i + self.zero, j + self.zero
        bias = self.equation.block_bias(i, j, query, key, bias)
        mask = self.visibility.allows(i, j, columns.take(rows.take(self.mask, 2), 3))
        mask = masks.all_of(mask, once)
        if self.folds:
            scores = dense.matmul_by_group(left, right)
        else:
            scores = dense.scores_of(self.equation.score, query, key)
        weights = dense.weigh(scores, bias, mask, self.equation.normalizer.loose, value.dtype)
        output = dense.matmul_by_group(weights, value)
        more = self.equation.block_values(i, j, weights)
        output = output if more is None else dense.plus(output, ops.transpose(more, (0, 2, 1, 3)))
        if mask is None:
            return output
        return output * ops.cast(ops.any(mask, axis=3, keepdims=True), output.dtype)

    def _join(self, cuts, axis):
        in_columns = cuts.pop(0)
        if self.global_keys is None:
            return in_columns
        return ops.concatenate([cuts.pop(0), in_columns], axis=axis)
