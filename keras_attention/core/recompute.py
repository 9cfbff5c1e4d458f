"""`recompute`: gradient checkpointing, which recomputes intermediate results for the gradient."""

import keras
from keras import tree


def recompute(compute):
    """Wrap a function so that its gradient recomputes it and does not store intermediate results.

    Higher-order gradients are supported.

    Args:
        compute: function of tensors, or of structures of tensors. It must not read variables. Its
            first argument must be or contain a float tensor: through it, the second computation is
            made to wait for the upstream gradient.

    Returns:
        A function with the same arguments and outputs.
    """
    if keras.backend.backend() == "tensorflow":
        return _recompute_with_tensorflow(compute)
    return keras.remat(compute)


def _recompute_with_tensorflow(compute):
    """Return the function of `recompute` for TensorFlow.

    `tf.recompute_grad` is not used: it supports neither second-order gradients nor integer and bool
    arguments, and copies every weight.
    """
    import tensorflow as tf

    def recomputed(*arguments):
        leaves = tree.flatten(arguments)
        indices = [i for i, x in enumerate(leaves) if tf.is_tensor(x)]
        num_streams = sum(i < len(tree.flatten(arguments[0])) for i in indices)
        returned = []

        def run(tensors):
            filled = list(leaves)
            for i, tensor in zip(indices, tensors, strict=True):
                filled[i] = tensor
            returned[:] = [compute(*tree.pack_sequence_as(arguments, filled))]
            return tree.flatten(returned[0])

        @tf.custom_gradient
        def run_twice(*tensors):
            def gradient(*upstream):
                inputs = _wait_for(upstream, tensors, num_streams)
                sources = [x for x in inputs if x.dtype.is_floating]
                with tf.GradientTape() as tape:
                    tape.watch(sources)
                    again = run(inputs)
                pairs = zip(again, upstream, strict=True)
                targets, of_targets = zip(
                    *(p for p in pairs if p[0].dtype.is_floating), strict=True
                )
                gradients = iter(tape.gradient(targets, sources, of_targets))
                return [next(gradients) if x.dtype.is_floating else None for x in inputs]

            # Tapes do not watch these copies, so intermediate results are not stored.
            return run([tf.stop_gradient(x) for x in tensors]), gradient

        outputs = run_twice(*(tf.convert_to_tensor(leaves[i]) for i in indices))
        return tree.pack_sequence_as(returned[0], outputs)

    return recomputed


def _wait_for(upstream, tensors, num_streams):
    """Return copies of `tensors` that are computed only after the gradients `upstream`.

    Both are lists of tensors. Under XLA this order alone does not prevent the first and the second
    computation from being merged. So the first `num_streams` tensors also depend on the value of a
    gradient: a 0 that is computed from it is added to them.
    """
    import tensorflow as tf

    upstream = [x for x in upstream if x is not None]
    with tf.control_dependencies(upstream):
        tensors = [tf.identity(x) for x in tensors]
    first = next(x for x in upstream if x.dtype.is_floating)
    element = tf.reshape(first, [-1])[:1]
    nothing = tf.reduce_sum(tf.minimum(tf.abs(element), 0))
    return [
        x + tf.cast(nothing, x.dtype) if i < num_streams and x.dtype.is_floating else x
        for i, x in enumerate(tensors)
    ]
