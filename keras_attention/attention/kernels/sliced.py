"""Exact attention, one slice of queries at a time: no pass ever holds all (T, S) scores."""

import copy
import dataclasses
import functools

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.kernels import dense
from keras_attention.attention.kernels.bias_and_mask import IndicesAndRange, Operand
from keras_attention.core.recompute import recompute


def refuses(case):
    """Why no kernel that works in slices can compute `case`, or None."""
    if case.weights:
        return "the weights are asked for, which only dense holds"
    if case.dropout:
        return "dropout on the weights is active, which only dense applies"
    if None in (case.query_length, case.key_length):
        return "the lengths are not known when the model is traced"
    return None


def attend_in_slices(
    query, key, value, *, score, normalizer, bias_and_mask, slices, global_keys=None
):
    """The output of `dense`, computed block by block.

    A block's weights live until its output is there; the backward pass computes them again. So
    memory is that of one block, in both passes, and the time that of the blocks alone.

    Args:
        query, key, value, score, normalizer, bias_and_mask: as `dense`.
        slices: list of (rows, columns), each an `AxisRange`: which keys each slice of the queries
            may attend to at most. Together the rows are all queries in order, and neither starts
            nor ends of the columns ever go back.
        global_keys: `AxisIndices`, further keys that all queries may attend to, or None.

    Returns:
        (B, T, N, Hv).
    """
    terms = dict(score=score, normalizer=normalizer, bias_and_mask=bias_and_mask)
    if keras.backend.backend() == "tensorflow":
        from keras_attention.attention.kernels import sliced_tensorflow, softmax_tensorflow

        if sliced_tensorflow.keeps_order():  # the form for CPUs, whose slices wait for no numbers
            by_hand = dict(terms, slices=slices, global_keys=global_keys)
            output = softmax_tensorflow.attend_in_slices(query, key, value, **by_hand)
            if output is not None:
                return ops.transpose(output, (0, 2, 1, 3))
    block = Block(**terms, global_keys=global_keys)
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

    def __init__(self, score, normalizer, bias_and_mask, global_keys):
        self.score, self.normalizer = score, normalizer
        self.bias_and_mask, self.global_keys = bias_and_mask, global_keys

    def operands(self, query, key, value):
        """What blocks are cut from, in the order in which a call takes the cuts."""
        self.folds = self.score.fold is not None
        self.looks = self.bias_and_mask.position is not None or not self.folds
        self.biased = self.bias_and_mask.bias is not None
        found = []
        if self.folds:
            left, right = dense.folded(self.score, query, key)  # (B, N, T, H), (B, K, H, S)
            found += [Operand(left, row_axis=2), *self._keys(right, 3)]
        found += self._keys(ops.transpose(value, (0, 2, 1, 3)), 2)
        if self.looks:
            found += [Operand(query, row_axis=1), *self._keys(key, 1)]
        if self.biased:
            bias = self.bias_and_mask.bias
            row_axis, column_axis = (axis if bias.shape[axis] != 1 else None for axis in (2, 3))
            found += [Operand(bias, row_axis, column_axis)]
            if self.global_keys is not None:
                found += [Operand(self.global_keys.take(bias, 3), row_axis)]
        return found

    def with_zero(self, zero):
        """The same block, whose positions are tensors that depend on `zero`."""
        other = copy.copy(self)
        other.bias_and_mask = dataclasses.replace(self.bias_and_mask, zero=zero)
        return other

    def _keys(self, x, axis):
        """Keys in the columns, and the keys that all see."""
        seen = [] if self.global_keys is None else [Operand(self.global_keys.take(x, axis))]
        return [Operand(x, column_axis=axis), *seen]

    def __call__(self, *cuts, rows, columns):
        """(B, N, rows, Hv)."""
        cuts = list(cuts)
        left = cuts.pop(0) if self.folds else None
        right = self._join(cuts, 3) if self.folds else None
        value = self._join(cuts, 2)
        query = cuts.pop(0) if self.looks else None
        key = self._join(cuts, 1) if self.looks else None
        bias = self._join(cuts, 3) if self.biased else None
        once = None
        if self.global_keys is not None:
            columns = IndicesAndRange(self.global_keys, columns)
            once = columns.distinct()
        bias, mask = self.bias_and_mask.block(rows, columns, query, key, bias)
        mask = masks.all_of(mask, once)
        if self.folds:
            scores = dense.matmul_by_group(left, right)
        else:
            scores = dense.scores_of(self.score, query, key)
        weights = dense.weigh(scores, bias, mask, self.normalizer.loose, value.dtype)
        output = dense.matmul_by_group(weights, value)
        more = self.bias_and_mask.values(rows, columns, weights)
        output = output if more is None else dense.plus(output, ops.transpose(more, (0, 2, 1, 3)))
        if mask is None:
            return output
        return output * ops.cast(ops.any(mask, axis=3, keepdims=True), output.dtype)

    def _join(self, cuts, axis):
        in_columns = cuts.pop(0)
        if self.global_keys is None:
            return in_columns
        return ops.concatenate([cuts.pop(0), in_columns], axis=axis)
