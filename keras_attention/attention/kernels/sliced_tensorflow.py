"""The loop over slices for TensorFlow, which executes a graph in any order that inputs allow.

Without a fixed order, TensorFlow may compute all slices before it uses the first, so that all
scores are in memory. Here each slice waits for the previous one, in both passes. If several slices
see a key, their gradients for it are added one by one, without padding each to the full length.

On a CPU, control dependencies set the order. XLA, which Keras uses on GPUs, ignores these. There, a
zero that is computed from the output of the previous slice is added to the inputs of a slice.
"""

import functools

import tensorflow as tf

from keras_attention.core import scope

MOST_CONSTANT = 2**22  # largest masks that TensorFlow may store as constants: 16 MB in float32


def keeps_order():
    """Return whether TensorFlow obeys control dependencies here: on a CPU, without XLA."""
    return not tf.config.list_physical_devices("GPU") and not compiles_with_xla()


def compiles_with_xla():
    """Return whether TensorFlow is tracing a graph for XLA."""
    from tensorflow.python.framework import ops as framework
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(framework.get_default_graph())


def compute_slices(block, operands, slices):
    """Compute the output (B, N, T, Hv) slice by slice. The gradient recomputes each block.

    `block` computes one slice from the tensors in the list `operands`. `slices` is a list of pairs
    (rows, columns), the ranges of queries and of keys.
    """
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
    """Return a tensor of value 0 that depends on `x`, so that it is not optimized away.

    The zero is added to positions, so that TensorFlow does not store the masks of slices as
    constants. Return None if the masks are small enough to be constants. `slices` is a list of
    pairs of `AxisRange`s (queries, keys).
    """
    if sum(rows.size * columns.size for rows, columns in slices) <= MOST_CONSTANT:
        return None
    return zero_of(x[:1, :1, :1, :1])


def zero_of(x):
    """Return an int32 tensor of value 0 that depends on all elements of the float tensor `x`."""
    return tf.minimum(tf.cast(tf.reduce_any(tf.math.is_nan(x)), "int32"), 0)


def _cuts(block, operands, tensors, rows, columns, after):
    """Return the parts of `tensors` for one slice, and the block that computes this slice.

    `tensors` are the current values of `operands`. `rows` and `columns` are the slice's ranges of
    queries and keys. Parts and block wait until the tensors in `after` are computed.
    """
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
        gradients = tape.gradient(
            output,
            [*cuts, *variables],
            rows.take(upstream, 2),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        done = [tf.convert_to_tensor(x) for x in gradients]
        for total, gradient in zip(sums, done, strict=False):
            total.add(gradient, columns)
        of_variables = [
            new if old is None else old + new
            for old, new in zip(of_variables, done[len(cuts) :], strict=True)
        ]
    gradients = [total.result() for total in sums]
    return (gradients, of_variables) if variables else gradients


class QueryGradients:
    """Collects the gradients of a tensor of queries by concatenating the gradients of all slices.

    If the tensor also has a key axis, gradients are padded along it.
    """

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
    """Collects the gradients of a tensor of keys, summed where the columns of slices overlap."""

    def __init__(self, operand):
        self.axis, self.length = operand.column_axis, operand.tensor.shape[operand.column_axis]
        self.finished, self.start, self.end, self.open = [], 0, 0, None

    def add(self, gradient, columns):
        if self.open is None:
            self._skip(gradient, columns.start)
            self.open = gradient
        elif columns.start >= self.end:  # no query sees the keys in between
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
            new = self._part(gradient, shared, columns.size)
            self.open = added if shared == columns.size else tf.concat([added, new], self.axis)
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
    """Sums the gradients of a tensor that every slice uses as a whole."""

    def __init__(self, operand):
        self.total = 0

    def add(self, gradient, columns):
        self.total = self.total + gradient

    def result(self):
        return self.total


def gradient_sum(operand):
    """Return an object that accumulates the gradients of all slices for one operand, a tensor.

    Call its `add(gradient, columns)` for all slices in order, and then `result()`.
    """
    if operand.row_axis is not None:
        return QueryGradients(operand)
    return (WholeGradients if operand.column_axis is None else KeyGradients)(operand)
