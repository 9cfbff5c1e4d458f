"""The loop over slices for TensorFlow, whose graphs run in any order that inputs allow.

Without an order, all slices may be computed before the first is used, which is the memory of the
whole score matrix again. Here each waits for the one before, in both passes; and gradients of keys
that many slices see are added up one by one, instead of each being padded to full length.

On a CPU control dependencies are the order. XLA drops them, and Keras compiles with XLA on GPUs:
there what a slice is computed of depends on the numbers of the one before, by a zero made of them.
"""

import functools

import tensorflow as tf

from keras_attention.core import scope

MOST_CONSTANT = 2**22  # pairs whose masks TensorFlow may keep as constants: 16 MB in float32


def keeps_order():
    """Return whether TensorFlow runs this graph as control dependencies say, on a CPU."""
    return not tf.config.list_physical_devices("GPU") and not compiles_with_xla()


def compiles_with_xla():
    """Return whether TensorFlow traces for XLA."""
    from tensorflow.python.framework import ops as framework
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(framework.get_default_graph())


def compute_slices(block, operands, slices):
    """Return the outputs (B, N, T, Hv) of all slices. Their gradient computes each block again."""
    exporting = scope.current(scope.Export)
    zero = None if exporting else zero_for(operands[0].tensor, slices)
    block = block if zero is None else block.with_zero(zero)

    def forward(*tensors):
        outputs = []
        for rows, columns in slices:
            cuts, compute = _cuts(block, operands, tensors, rows, columns, after=outputs[-1:])
            outputs.append(compute(*cuts, rows=rows, columns=columns))
        return tf.concat(outputs, axis=2)

    @tf.custom_gradient
    def with_gradient(*tensors):
        def gradient(upstream, variables=()):
            return _gradient(block, operands, slices, tensors, upstream, variables)

        return forward(*tensors), gradient

    tensors = [operand.tensor for operand in operands]
    return forward(*tensors) if exporting else with_gradient(*tensors)


def zero_for(x, slices):
    """0, as a tensor that depends on `x` for all that TensorFlow's optimizer knows.

    None where the masks of all slices, which it keeps from being constants, may be.
    """
    if sum(rows.size * columns.size for rows, columns in slices) <= MOST_CONSTANT:
        return None
    return zero_of(x[:1, :1, :1, :1])


def zero_of(x):
    """0, int32, for all that compilers know made of every number of the float tensor `x`."""
    return tf.minimum(tf.cast(tf.reduce_any(tf.math.is_nan(x)), "int32"), 0)


def _cuts(block, operands, tensors, rows, columns, after):
    """Return the cuts of a slice and the block that computes them. Both wait for `after`."""
    zero = block.zero
    by_numbers = after and not scope.current(scope.Export) and not keeps_order()
    with tf.control_dependencies(after):
        cuts = [
            tf.identity(operand.cut(rows, columns, x))
            for operand, x in zip(operands, tensors, strict=True)
        ]
        zero = None if zero is None else tf.identity(zero)
    if by_numbers:
        wait = functools.reduce(tf.maximum, [zero_of(x) for x in after])
        cuts = [cut + tf.cast(wait, cut.dtype) for cut in cuts]
        zero = None if zero is None else zero + wait
    return cuts, block if zero is None else block.with_zero(zero)


def _gradient(block, operands, slices, tensors, upstream, variables):
    sums = [gradient_sum(operand) for operand in operands]
    of_variables = [None] * len(variables)
    done = []
    for rows, columns in slices:
        cuts, compute = _cuts(block, operands, tensors, rows, columns, after=done)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*cuts, *variables])
            output = compute(*cuts, rows=rows, columns=columns)
        found = tape.gradient(
            output,
            [*cuts, *variables],
            rows.take(upstream, 2),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        found = [tf.convert_to_tensor(x) for x in found]
        for total, gradient in zip(sums, found, strict=False):
            total.add(gradient, columns)
        of_variables = [
            new if old is None else old + new
            for old, new in zip(of_variables, found[len(cuts) :], strict=True)
        ]
        done = found
    gradients = [total.result() for total in sums]
    return (gradients, of_variables) if variables else gradients


class QueryGradients:
    """Gradients for tensors of queries: side by side, and padded along an axis of keys, if any."""

    def __init__(self, operand):
        self.operand, self.pieces = operand, []

    def add(self, gradient, columns):
        axis = self.operand.column_axis
        if axis is not None:
            margins = [[0, 0]] * len(gradient.shape)
            margins[axis] = [columns.start, self.operand.tensor.shape[axis] - columns.end]
            gradient = tf.pad(gradient, margins)
        self.pieces.append(gradient)

    def result(self):
        return tf.concat(self.pieces, axis=self.operand.row_axis)


class KeyGradients:
    """Gradients for tensors of keys: columns overlap; those that no later slice sees are final."""

    def __init__(self, operand):
        self.axis, self.length = operand.column_axis, operand.tensor.shape[operand.column_axis]
        self.finished, self.start, self.end, self.open = [], 0, 0, None

    def add(self, gradient, columns):
        if self.open is None:
            self._skip(gradient, columns.start)
            self.open = gradient
        elif columns.start >= self.end:  # no query attends to the keys between
            self.finished.append(self.open)
            self._skip(gradient, columns.start - self.end)
            self.open = gradient
        else:
            done = columns.start - self.start
            shared = self.end - columns.start
            if done:
                self.finished.append(self._part(self.open, 0, done))
                self.open = self._part(self.open, done, done + shared)
            added = self.open + self._part(gradient, 0, shared)
            rest = self._part(gradient, shared, columns.size)
            self.open = added if shared == columns.size else tf.concat([added, rest], self.axis)
        self.start, self.end = columns.start, columns.end

    def result(self):
        self.finished.append(self.open)
        self._skip(self.open, self.length - self.end)
        return tf.concat(self.finished, axis=self.axis)

    def _skip(self, like, size):
        if size:
            shape = tf.tensor_scatter_nd_update(tf.shape(like), [[self.axis]], [size])
            self.finished.append(tf.zeros(shape, like.dtype))

    def _part(self, x, start, end):
        if start == 0 and end == x.shape[self.axis]:
            return x
        return x[(slice(None),) * self.axis + (slice(start, end),)]


class WholeGradients:
    """Gradients for tensors that every slice sees whole: a sum."""

    def __init__(self, operand):
        self.total = 0

    def add(self, gradient, columns):
        self.total = self.total + gradient

    def result(self):
        return self.total


def gradient_sum(operand):
    """Return the sum of the gradients of all slices for a tensor that they are cut from.

    Call `add(gradient, columns)` for the slices in order, then `result()`. Gradients are added up
    one by one, and padded only where that cannot be avoided.
    """
    if operand.row_axis is not None:
        return QueryGradients(operand)
    return (WholeGradients if operand.column_axis is None else KeyGradients)(operand)
