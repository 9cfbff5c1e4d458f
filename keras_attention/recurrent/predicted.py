"""Tokens that a decoder is fed in place of the given ones."""

from keras import ops


def predicted_ids(logits, uniform=None):
    """The likeliest token of each place, or one drawn by its probability; never 0, the padding.

    Args:
        logits: (..., V).
        uniform: float in [0, 1), (...): a random number for each place to draw by, or None for the
            likeliest.

    Returns:
        int32 (...), without a gradient.
    """
    logits = ops.cast(logits[..., 1:], "float32")
    if uniform is None:
        ids = ops.argmax(logits, axis=-1)
    else:  # the first whose share of the probability, with those before, is above the number
        shares = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
        below = ops.cast(shares <= ops.expand_dims(uniform, axis=-1), "int32")
        ids = ops.minimum(ops.sum(below, axis=-1), logits.shape[-1] - 1)
    return ops.stop_gradient(ops.cast(ids, "int32") + 1)
