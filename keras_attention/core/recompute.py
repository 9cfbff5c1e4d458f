"""Functions whose gradients compute them again, so that memory does not hold the steps between."""

import keras
from keras import tree


def recompute(compute):
    """Return `compute` as a function whose gradient computes it again.

    The gradient can be differentiated again, any number of times.

    Args:
        compute: function of tensors, or of structures of tensors. It reads no variables. Its first
            argument is a float tensor, or has one: the second computation waits for the gradient
            that it is needed for.

    Returns:
        A function of the same arguments and outputs.
    """
    if keras.backend.backend() == "tensorflow":
        return _recompute_with_tensorflow(compute)
    return keras.remat(compute)


def _recompute_with_tensorflow(compute):
    """Do as `tf.recompute_grad`, and differentiate any number of times.

    `tf.recompute_grad` has no second-order gradients, takes and returns no integers and truth
    values, and adds a number to every weight, so that memory holds them twice.
    """
    import tensorflow as tf

    def recomputed(*arguments):
        leaves = tree.flatten(arguments)
        places = [i for i, x in enumerate(leaves) if tf.is_tensor(x)]
        num_streams = sum(i < len(tree.flatten(arguments[0])) for i in places)
        returned = []

        def run(tensors):
            filled = list(leaves)
            for i, tensor in zip(places, tensors, strict=True):
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

            # A tape keeps what is computed of a tensor that it watches: of these it watches none.
            return run([tf.stop_gradient(x) for x in tensors]), gradient

        outputs = run_twice(*(tf.convert_to_tensor(leaves[i]) for i in places))
        return tree.pack_sequence_as(returned[0], outputs)

    return recomputed


def _wait_for(upstream, tensors, num_streams):
    """Return `tensors` once the gradients `upstream` are computed, not sooner.

    The first `num_streams` depend on their values: XLA has no other order, and computes equal
    things once.
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
