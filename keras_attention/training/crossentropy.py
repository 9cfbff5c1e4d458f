"""Cross-entropy of every position, labels smoothed: what loss and perplexity are made of."""

from keras import ops


def crossentropy(labels, logits, label_smoothing=0.0):
    """-log of the probabilities of `labels`, or what smoothing asks for.

    The backends' fused loss takes longer on a CPU, and smoothing would have to go over the classes
    once more beside it.

    Args:
        labels: int32 (...), below L. TensorFlow raises an error on CPUs where one is not.
        logits: floats (..., L).
        label_smoothing: float, as in `MaskedSparseCategoricalCrossentropy`.

    Returns:
        (...), in the dtype of the logits.
    """
    size = ops.shape(logits)[-1]
    classes = ops.arange(size, dtype="int32")
    labels = ops.take(classes, ops.where(labels < 0, size, labels))
    # Without the largest logit nothing overflows.
    logits = logits - ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
    right = ops.where(ops.equal(ops.expand_dims(labels, -1), classes), logits, 0.0)
    losses = ops.log(ops.sum(ops.exp(logits), axis=-1))
    losses = losses - (1 - label_smoothing) * ops.sum(right, axis=-1)
    if label_smoothing:
        losses = losses - label_smoothing * ops.mean(logits, axis=-1)
    return losses
