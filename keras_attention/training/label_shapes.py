"""Checks of the shapes of labels and sample weights, for losses and metrics."""

from keras import ops

from keras_attention.core.checks import refuse_ragged


def match_labels(name, labels, predictions):
    """Return labels in the shape (...) that fits predictions (..., L) over L classes.

    As in Keras, labels (..., 1) lose their last axis. For any other shape, which might broadcast
    silently, a ValueError is raised that names `name`, the loss or metric. Sizes that are unknown
    while TensorFlow traces are compared when the graph runs.
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
    """Return 0/1 targets in the shape (B, L) of predictions of L independent labels.

    As in Keras, targets (B,) gain a last axis if the predictions are (B, 1). For any other shape a
    ValueError is raised that names `name`, the loss or metric.
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
    """Return labels in the shape (B, U) for predictions (B, T, V), where U may differ from T.

    U is the number of labels of a row, T the number of frames, and V the number of classes. Labels
    (B, U, 1) lose their last axis. For any other shape a ValueError is raised that names `name`,
    the loss or metric.
    """
    refuse_ragged(name, labels)
    shape, scores = shape_of(labels), shape_of(predictions)
    labels = _drop_last_axis(ops.convert_to_tensor(labels), 2)
    if len(scores) != 3 or len(labels.shape) != 2 or not _agree(labels.shape[:1], scores[:1]):
        raise ValueError(
            f"{name}: labels of shape {shape} for predictions of shape {scores}:"
            " expected labels (B, U) and predictions (B, T, V)."
        )
    return labels


def match_numbers(name, numbers, logits):
    """Split the numbers of texts (B, 1 + K) in a batch of B pairs: return queries and documents.

    A row has the number of its query, and of K documents. Queries are (B,). Documents are (K · B,):
    the first of each row, then the second of each row, and so on. The logits are (B, K · B), or (B,
    P, K · B) for vectors of P sizes. For any other shape a ValueError is raised that names `name`,
    the loss or metric. Sizes that are unknown while TensorFlow traces are compared when the graph
    runs.
    """
    refuse_ragged(name, numbers)
    shape, expected = shape_of(numbers), shape_of(logits)
    fits = len(shape) == 2 and shape[1] != 1 and len(expected) in (2, 3)
    fits = fits and _agree(shape[:1], expected[:1])
    if fits and None not in (*shape, expected[-1]):
        fits = expected[-1] == shape[0] * (shape[1] - 1)
    if not fits:
        raise ValueError(
            f"{name}: labels of shape {shape} for predictions of shape {expected}: expected the"
            " numbers of texts (B, 1 + K) and logits (B, K · B) or (B, P, K · B)."
        )
    numbers, logits = ops.convert_to_tensor(numbers), ops.convert_to_tensor(logits)
    if len(expected) == 3:
        logits = logits[:, 0]
    queries = _check_when_run(numbers[:, 0], (None,), logits[:, 0])
    documents = ops.reshape(ops.transpose(numbers[:, 1:]), (-1,))
    return queries, _check_when_run(documents, (None,), logits[0])


def check_objects(name, y_true, y_pred):
    """Raise a ValueError unless labels are (B, M), boxes (B, M, 4) and logits (B, Q, C).

    M is the number of objects, Q of queries, and C of classes.

    `y_true` and `y_pred` are the dicts that `HungarianLoss` explains. The error names the loss
    `name`.
    """
    labels, boxes, logits = map(shape_of, (y_true["labels"], y_true["boxes"], y_pred["logits"]))
    have_ranks = len(labels) == 2 and _agree(boxes, (*labels, 4)) and len(logits) == 3
    if not (have_ranks and _agree(labels[:1], logits[:1])):
        raise ValueError(
            f"{name}: labels of shape {labels} and boxes of shape {boxes} for logits of shape"
            f" {logits}: expected labels (B, M), boxes (B, M, 4) and logits (B, Q, C)."
        )


def match_weights(name, weights, shape, dtype=None):
    """Return sample weights with axes appended, so that they broadcast to an array of `shape`.

    Args:
        name: str, the loss or metric, for the error message.
        weights: array with all axes of `shape`, or only with the first axes. Axes of size 1
            broadcast. Weights (B,) always belong to rows, even for an array (B, T) with B = T.
        shape: tuple of int, with None for unknown sizes.
        dtype: dtype of the result. None keeps the dtype of `weights`.
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
    """Return the weights of classes as a list of floats, or None. All must be positive.

    `name` is the argument with the weights, a str for the message.
    """
    if weights is None:
        return None
    weights = [float(weight) for weight in weights]
    if not all(0 < weight < float("inf") for weight in weights):
        raise ValueError(f"{name}={weights}: expected numbers above 0, one for each class.")
    return weights


def shape_of(array):
    """Return the static shape of an array or list as a tuple, with None for unknown sizes."""
    if isinstance(array, (list, tuple, int, float)):
        array = ops.convert_to_tensor(array)
    return tuple(array.shape)


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
    """Return `labels` with a check, made when the graph runs, that its shape is that of `other`.

    If all sizes in `shape` and `labels` are known, `labels` is returned unchanged.
    """
    if None not in (*shape, *shape_of(labels)):
        return labels
    zeros = ops.zeros_like(other, dtype=labels.dtype)
    return ops.stack([labels, zeros])[0]
