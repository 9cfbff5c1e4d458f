"""The loop over slices for TensorFlow, whose graphs run in any order that inputs allow.

Without an order, all slices may be computed before the first is used, which is the memory of the
whole square again. Here each waits for the one before, in both passes; and gradients of keys that
many slices see are added up as they come, instead of each being padded to full length.
"""

import tensorflow as tf

from keras_attention import scope
from keras_attention.attention.kernels import gradient_sums

MOST_CONSTANT = 2**22  # pairs whose masks TensorFlow may keep as constants: 16 MB in float32


def run(block, operands, slices):
    """The outputs of all slices, (B, N, T, Hv), with a gradient that computes each block again."""
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
    corner = x[:1, :1, :1, :1]
    return tf.minimum(tf.cast(tf.reduce_any(tf.math.is_nan(corner)), "int32"), 0)


def _cuts(block, operands, tensors, rows, columns, after):
    """The cuts of a slice and the block to compute them with; nothing is made before `after`."""
    with tf.control_dependencies(after):
        cuts = [
            tf.identity(operand.cut(rows, columns, x))
            for operand, x in zip(operands, tensors, strict=True)
        ]
        zero = block.square.zero
        return cuts, block if zero is None else block.with_zero(tf.identity(zero))


def _gradient(block, operands, slices, tensors, upstream, variables):
    sums = [gradient_sums.sum_for(operand) for operand in operands]
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
