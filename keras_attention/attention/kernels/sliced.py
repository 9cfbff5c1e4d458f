"""Exact attention, one slice of queries at a time, without holding all (T, S) scores in memory."""

import copy
import functools

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.axis_pieces import IndicesAndRange, Operand
from keras_attention.core.recompute import recompute


def find_obstacle(lengths, equation, visibility):
    """Return the reason (str) why attention in slices cannot compute a call, or None if it can.

    `lengths` is (T, S), each an int, or None if dynamic. `equation` has the score, normalizer and
    position encoding of the call, and `visibility` its masks and positions.
    """
    return "the lengths are not known when the model is traced" if None in lengths else None


def attend_in_slices(query, key, value, equation, visibility, slices, global_keys=None):
    """Compute the same output as `dense` (B, T, N, Hv), block by block.

    A block is the attention of a slice of queries to its keys. Both the forward and the backward
    pass hold the weights of only one block in memory, and the backward pass recomputes them.
    Pairs outside the blocks cost no time.

    Args:
        query, key, value: (B, T, N, H), (B, S, K, H) and (B, S, K, Hv), the heads.
        equation: the `Equation` to compute: score, bias, normalizer and dropout.
        visibility: the `Visibility` of the call: its masks and positions.
        slices: list of pairs (rows, columns) of `AxisRange`s. The queries in `rows` must not see
            keys outside `columns`. The rows of all slices, in order, must be all queries. Starts
            and ends of the columns must not decrease from slice to slice.
        global_keys: `AxisIndices`, additional keys for all queries, or None.
    """
    if keras.backend.backend() == "tensorflow":
        from keras_attention.attention.kernels import sliced_tensorflow, softmax_tensorflow

        if sliced_tensorflow.keeps_order():  # on CPUs
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
    """Computes the attention of one slice of queries, from tensors that are cut for this slice.

    A call returns the output (B, N, rows, Hv). `equation` is an `Equation`, and `visibility` a
    `Visibility`. `global_keys` is `AxisIndices` (positions of keys that all queries see) or None.
    """

    def __init__(self, equation, visibility, global_keys):
        self.equation, self.visibility, self.global_keys = equation, visibility, global_keys
        self.mask = visibility.tensor  # computed here, not in the inner graphs of the blocks
        self.zero = None

    def operands(self, query, key, value):
        """Return all tensors of a call as a list of `Operand`s, which can be cut for each slice.

        An `Operand` is a tensor with its axes of queries and keys. The arguments are heads:
        (B, T, N, H), (B, S, K, H) and (B, S, K, Hv).
        """
        self.folds = self.equation.score.fold is not None
        self.looks = self.equation.position_biases or not self.folds
        operands, bias = [], self.equation.bias
        if self.folds:
            # (B, N, T, H), (B, K, H, S)
            left, right = dense.fold(self.equation.score, query, key)
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
        """Return a copy that adds `zero`, an int tensor of value 0, to its positions.

        Without it, a compiler would store the masks of all blocks, (T, S) values, as constants.
        """
        block = copy.copy(self)
        block.zero = zero
        return block

    def _keys(self, x, axis):
        """Return a list of `Operand`s: `x`, to be cut to a slice's keys, and its global keys.

        `x` is a tensor of keys or values, and `axis` its axis of length S. The second operand is
        missing without global keys.
        """
        operands = [Operand(x, column_axis=axis)]
        if self.global_keys is not None:
            operands.append(Operand(self.global_keys.take(x, axis)))
        return operands

    def __call__(self, *cuts, rows, columns):
        """Compute the output of the slice of queries `rows` and keys `columns`: (B, N, rows, Hv).

        `cuts` are the operands, cut for this slice, in the order of `operands`.
        """
        cuts = list(cuts)
        left = cuts.pop(0) if self.folds else None
        right = self._join(cuts, 3) if self.folds else None
        value = self._join(cuts, 2)
        query = cuts.pop(0) if self.looks else None
        key = self._join(cuts, 1) if self.looks else None
        bias = None if self.equation.bias is None else self._join(cuts, 3)
        distinct = None
        if self.global_keys is not None:
            columns = IndicesAndRange(self.global_keys, columns)
            distinct = columns.distinct()
        i, j = self.visibility.positions(rows, columns)
        if self.zero is not None:
            i, j = i + self.zero, j + self.zero
        bias = self.equation.block_bias(i, j, query, key, bias)
        mask = self.visibility.allows(i, j, columns.take(rows.take(self.mask, 2), 3))
        mask = masks.all_of(mask, distinct)
        if self.folds:
            scores = dense.matmul_by_group(left, right)
        else:
            scores = dense.compute_scores(self.equation.score, query, key)
        if bias is not None:
            scores = ops.cast(scores, bias.dtype) + bias  # not ops.add: see tests/test_traps.py
        weights = ops.cast(self.equation.normalizer.loose(scores, mask), value.dtype)
        output = dense.matmul_by_group(weights, value)
        values = self.equation.block_values(i, j, weights)
        if values is not None:
            output = dense.add_position_values(output, ops.transpose(values, (0, 2, 1, 3)))
        if mask is None:
            return output
        return output * ops.cast(ops.any(mask, axis=3, keepdims=True), output.dtype)

    def _join(self, cuts, axis):
        in_columns = cuts.pop(0)
        if self.global_keys is None:
            return in_columns
        return ops.concatenate([cuts.pop(0), in_columns], axis=axis)
