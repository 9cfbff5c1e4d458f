"""Labels and weights in the shapes that losses and metrics compute with, or an error."""

from keras import ops


def match_labels(owner, labels, predictions):
    """Labels (...) for predictions (..., L), of classes.

    As in Keras, labels (..., 1) lose their last axis. Every other difference is an error: arrays of
    different shapes would broadcast, and each label would meet the predictions of all.

    Args:
        owner: str, the loss or metric, for the error.
        labels: ints.
        predictions: logits or probabilities, with the axis of classes last.

    Returns:
        `labels` in the shape of `predictions` without its last axis. A size that is
        unknown while TensorFlow traces is compared when the graph runs.
    """
    wanted = shape_of(predictions)[:-1]
    found = _drop_last_axis(ops.convert_to_tensor(labels), len(wanted))
    if not _agree(shape_of(found), wanted):
        given, classes = shape_of(labels), shape_of(predictions)
        hint = ""
        if len(given) == len(classes) and given[-1] == classes[-1]:
            hint = " One-hot labels become classes by argmax over the last axis."
        raise ValueError(
            f"{owner}: labels of shape {given} for predictions of shape {classes}: expected labels"
            f" of shape {wanted}.{hint}"
        )
    return _check_when_run(found, wanted, predictions)


def match_targets(owner, targets, predictions):
    """Targets of the same shape as predictions (B, L), of labels that are each true or not.

    As in Keras, targets (B,) are for predictions (B, 1).
    """
    wanted, found = shape_of(predictions), ops.convert_to_tensor(targets)
    if len(found.shape) == len(wanted) - 1 and wanted[-1] == 1:
        found = ops.expand_dims(found, -1)
    if not _agree(shape_of(found), wanted):
        raise ValueError(
            f"{owner}: labels of shape {shape_of(targets)} for predictions of shape {wanted}:"
            " expected both of one shape, with a number for each label."
        )
    return found


def match_rows(owner, labels, predictions):
    """Return labels (B, U) for predictions (B, T, V). Labels (B, U, 1) lose their last axis."""
    wanted, found = shape_of(predictions), _drop_last_axis(ops.convert_to_tensor(labels), 2)
    if len(wanted) != 3 or len(found.shape) != 2 or not _agree(found.shape[:1], wanted[:1]):
        raise ValueError(
            f"{owner}: labels of shape {shape_of(labels)} for predictions of shape {wanted}:"
            " expected labels (B, U) and predictions (B, T, V)."
        )
    return found


def check_objects(owner, y_true, y_pred):
    """Refuse objects whose labels (B, M) and boxes (B, M, 4) do not go with logits (B, Q, C)."""
    labels, boxes, logits = map(shape_of, (y_true["labels"], y_true["boxes"], y_pred["logits"]))
    right = len(labels) == 2 and _agree(boxes, (*labels, 4)) and len(logits) == 3
    if not (right and _agree(labels[:1], logits[:1])):
        raise ValueError(
            f"{owner}: labels of shape {labels} and boxes of shape {boxes} for logits of shape"
            f" {logits}: expected labels (B, M), boxes (B, M, 4) and logits (B, Q, C)."
        )


def match_weights(owner, weights, shape, dtype=None):
    """Weights of rows, or of positions, as they are multiplied with an array of `shape`.

    Weights (B,) are those of rows, whatever follows, also where an array (B, T) has B = T.

    Args:
        owner: str, the loss or metric, for the error.
        weights: floats of `shape` or of its first axes. An axis of size 1 is broadcast.
        shape: tuple of the sizes that are known, and None.
        dtype: of the result.
    """
    found = _drop_last_axis(ops.convert_to_tensor(weights, dtype=dtype), len(shape))
    given = shape_of(found)
    fits = len(given) <= len(shape) and all(
        None in (size, wanted) or size in (1, wanted)
        for size, wanted in zip(given, shape, strict=False)
    )
    if not fits:
        raise ValueError(
            f"{owner}: sample_weight of shape {shape_of(weights)} for values of shape"
            f" {tuple(shape)}: expected that shape, or its first axes."
        )
    for _ in range(len(shape) - len(given)):
        found = ops.expand_dims(found, -1)
    return found


def shape_of(array):
    """Return the static shape as a tuple, with None for unknown sizes."""
    return tuple(getattr(array, "shape", None) or ops.convert_to_tensor(array).shape)


def _drop_last_axis(array, rank):
    if len(array.shape) == rank + 1 and array.shape[-1] == 1:
        return ops.squeeze(array, -1)
    return array


def _agree(given, wanted):
    return len(given) == len(wanted) and all(
        size == other or None in (size, other) for size, other in zip(given, wanted, strict=True)
    )


def _check_when_run(labels, wanted, predictions):
    """`labels`, after an operation that fails where a size that was not known is another."""
    if None not in (*wanted, *shape_of(labels)):
        return labels
    alike = ops.zeros_like(predictions[..., 0], dtype=labels.dtype)
    return ops.stack([labels, alike])[0]
