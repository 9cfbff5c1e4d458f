"""Labels and weights in the shapes that losses and metrics compute with."""

from keras import ops

from keras_attention.core.checks import refuse_ragged


def match_labels(name, labels, predictions):
    """Return labels (...) for predictions (..., L) of classes.

    As in Keras, labels (..., 1) lose their last axis. Any other difference is an error: arrays of
    different shapes would broadcast, and each label would meet the predictions of all.

    Args:
        name: str, the loss or metric, for the error.
        labels: ints.
        predictions: logits or probabilities, with the axis of classes last.

    Returns:
        `labels` in the shape of `predictions` without its last axis. A size that TensorFlow does
        not know while it traces is compared when the graph runs.
    """
    refuse_ragged(name, labels)
    shape, classes = shape_of(labels), shape_of(predictions)
    expected = classes[:-1]
    labels = _drop_last_axis(ops.convert_to_tensor(labels), len(expected))
    if not _agree(shape_of(labels), expected):
        hint = ""
        if len(shape) == len(classes) and shape[-1] == classes[-1]:
            hint = " One-hot labels become classes by argmax over the last axis."
        raise ValueError(
            f"{name}: labels of shape {shape} for predictions of shape {classes}: expected labels"
            f" of shape {expected}.{hint}"
        )
    return _check_when_run(labels, expected, predictions[..., 0])


def match_targets(name, targets, predictions):
    """Return targets in the shape of predictions (B, L), for labels that are each true or not.

    As in Keras, targets (B,) are for predictions (B, 1).
    """
    refuse_ragged(name, targets)
    shape, expected = shape_of(targets), shape_of(predictions)
    targets = ops.convert_to_tensor(targets)
    if len(targets.shape) == len(expected) - 1 and expected[-1] == 1:
        targets = ops.expand_dims(targets, -1)
    if not _agree(shape_of(targets), expected):
        raise ValueError(
            f"{name}: labels of shape {shape} for predictions of shape {expected}:"
            " expected both of one shape, with a number for each label."
        )
    return _check_when_run(targets, expected, ops.convert_to_tensor(predictions))


def match_rows(name, labels, predictions):
    """Return labels (B, U) for predictions (B, T, V). Labels (B, U, 1) lose their last axis."""
    refuse_ragged(name, labels)
    shape, scores = shape_of(labels), shape_of(predictions)
    labels = _drop_last_axis(ops.convert_to_tensor(labels), 2)
    if len(scores) != 3 or len(labels.shape) != 2 or not _agree(labels.shape[:1], scores[:1]):
        raise ValueError(
            f"{name}: labels of shape {shape} for predictions of shape {scores}:"
            " expected labels (B, U) and predictions (B, T, V)."
        )
    return labels


def check_objects(name, y_true, y_pred):
    """Refuse labels (B, M) and boxes (B, M, 4) that do not fit logits (B, Q, C)."""
    labels, boxes, logits = map(shape_of, (y_true["labels"], y_true["boxes"], y_pred["logits"]))
    have_ranks = len(labels) == 2 and _agree(boxes, (*labels, 4)) and len(logits) == 3
    if not (have_ranks and _agree(labels[:1], logits[:1])):
        raise ValueError(
            f"{name}: labels of shape {labels} and boxes of shape {boxes} for logits of shape"
            f" {logits}: expected labels (B, M), boxes (B, M, 4) and logits (B, Q, C)."
        )


def match_weights(name, weights, shape, dtype=None):
    """Return weights of rows, or of positions, in a shape that multiplies an array of `shape`.

    Weights (B,) are those of rows, also for an array (B, T) with B = T.

    Args:
        name: str, the loss or metric, for the error.
        weights: floats of `shape` or of its first axes. An axis of size 1 is broadcast.
        shape: tuple of sizes, None where unknown.
        dtype: of the result.
    """
    refuse_ragged(name, weights)
    weights_shape = shape_of(weights)
    weights = _drop_last_axis(ops.convert_to_tensor(weights, dtype=dtype), len(shape))
    sizes = shape_of(weights)
    fits = len(sizes) <= len(shape) and all(
        None in (size, other) or size in (1, other)
        for size, other in zip(sizes, shape, strict=False)
    )
    if not fits:
        raise ValueError(
            f"{name}: sample_weight of shape {weights_shape} for values of shape"
            f" {tuple(shape)}: expected that shape, or its first axes."
        )
    for _ in range(len(shape) - len(sizes)):
        weights = ops.expand_dims(weights, -1)
    return weights


def check_class_weights(name, weights):
    """Return `weights` as a list of floats above 0, or None."""
    if weights is None:
        return None
    weights = [float(weight) for weight in weights]
    if not all(0 < weight < float("inf") for weight in weights):
        raise ValueError(f"{name}={weights}: expected numbers above 0, one for each class.")
    return weights


def shape_of(array):
    """Return the static shape as a tuple, with None for unknown sizes."""
    return tuple(getattr(array, "shape", None) or ops.convert_to_tensor(array).shape)


def _drop_last_axis(array, rank):
    if len(array.shape) == rank + 1 and array.shape[-1] == 1:
        return ops.squeeze(array, -1)
    return array


def _agree(shape, other_shape):
    return len(shape) == len(other_shape) and all(
        size == other or None in (size, other)
        for size, other in zip(shape, other_shape, strict=True)
    )


def _check_when_run(labels, shape, other):
    """Return `labels`, with an operation that fails if a size unknown now differs later."""
    if None not in (*shape, *shape_of(labels)):
        return labels
    zeros = ops.zeros_like(other, dtype=labels.dtype)
    return ops.stack([labels, zeros])[0]
