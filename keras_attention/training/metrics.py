"""Metrics that leave padding out: accuracies and perplexity."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.training.label_shapes import match_labels, match_weights, shape_of
from keras_attention.training.losses import compute_crossentropy


def read_positions(metric, y_true, y_pred, sample_weight=None):
    """The label of every position, and its weight: 0 where it is ignored or masked.

    Args:
        metric: with an `ignore_class`.
        y_true: int labels.
        y_pred: logits or probabilities, of the shape of the labels and one axis of classes.
        sample_weight: of the shape of the labels, or of its leading axes; or None.

    Returns:
        int32 labels, and weights in the metric's dtype, of one shape.
    """
    owner = type(metric).__name__
    labels = match_labels(owner, y_true, y_pred)
    weights = ops.cast(ops.not_equal(labels, metric.ignore_class), metric.dtype)
    mask = keras_internals.get_mask(y_pred)
    if mask is not None:
        weights = weights * ops.cast(mask, metric.dtype)
    if sample_weight is not None:
        weights = weights * match_weights(owner, sample_weight, shape_of(labels), metric.dtype)
    return ops.cast(labels, "int32"), weights


class MaskedMean(keras.metrics.Mean):
    """A mean that leaves some positions out; subclasses define the values in `update_state`.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str. dtype: of the result.
    """

    def __init__(self, ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name or self.default_name, dtype=dtype)
        self.ignore_class = ignore_class

    def add_positions(self, values, weights):
        """Adds each position by its own weight; Keras's own mean first averages rows.

        A sum of all axes leaves a batch split among devices where a reshape would gather it.
        """
        weights = ops.cast(weights, self.dtype)
        self.total.assign_add(ops.sum(ops.multiply(ops.cast(values, self.dtype), weights)))
        self.count.assign_add(ops.sum(weights))

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}


def find_right(y_true, y_pred):
    """Where the largest of `y_pred` (..., L) is the label's: bool, in the shape of `y_true`."""
    return ops.equal(y_true, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalAccuracy(MaskedMean):
    """The share of positions whose largest logit is the label's; `ignore_class` is left out.

    Every position weighs the same. Keras's own mean weighs every *row* of a batch the same, so
    that tokens count differently in batches of different lengths.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any shape.
        y_pred: logits or probabilities, the shape of `y_true` and one axis of classes.
        sample_weight: of the shape of `y_true`, or of its leading axes.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.MaskedSparseCategoricalAccuracy()
    accuracy.update_state(np.array([[0, 1, -1]]), np.array([[[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]]))
    assert float(accuracy.result()) == 0.5
    ```
    """

    default_name = "masked_sparse_categorical_accuracy"

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, weights = read_positions(self, y_true, y_pred, sample_weight)
        self.add_positions(find_right(labels, y_pred), weights)


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSequenceAccuracy(MaskedMean):
    """The share of rows in which the largest logit is the label's at every position.

    For a decoder with teacher forcing, it is the share of rows that greedy decoding generates
    exactly: it leaves the target only where another logit is the largest.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding. A row in
            which all are left out does not count.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T).
        y_pred: logits or probabilities (B, T, L).
        sample_weight: (B,) or (B, T). Positions of weight 0 are left out; a row has the largest
            weight of its positions.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.MaskedSequenceAccuracy()
    logits = np.eye(4)[[[1, 2, 0], [3, 0, 0]]]
    accuracy.update_state(np.array([[1, 2, -1], [3, 1, 0]]), logits)
    assert float(accuracy.result()) == 0.5
    ```
    """

    default_name = "masked_sequence_accuracy"

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, weights = read_positions(self, y_true, y_pred, sample_weight)
        if len(labels.shape) < 2:
            raise ValueError(
                f"MaskedSequenceAccuracy: labels of shape {shape_of(y_true)} have no axis of "
                "positions: expected (B, T). For one label a row use "
                "MaskedSparseCategoricalAccuracy."
            )
        right = find_right(labels, y_pred)
        right = ops.all(ops.logical_or(right, ops.equal(weights, 0)), axis=-1)  # (B,)
        super().update_state(right, ops.max(weights, axis=-1))


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedPerplexity(MaskedMean):
    """Perplexity: e to the power of the mean cross-entropy of a token.

    Every token of an epoch weighs the same, and labels are never smoothed.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any shape.
        y_pred: logits, the shape of `y_true` and one axis of classes.
        sample_weight: of the shape of `y_true`, or of its leading axes.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    perplexity = ka.training.MaskedPerplexity()
    perplexity.update_state(np.array([[3, 1, -1]]), np.zeros((1, 3, 5)))
    assert abs(float(perplexity.result()) - 5.0) < 1e-5  # five tokens, equally likely
    ```
    """

    default_name = "masked_perplexity"

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, weights = read_positions(self, y_true, y_pred, sample_weight)
        counts = ops.not_equal(weights, 0)
        labels = ops.where(counts, labels, 0)
        logits = ops.cast(ops.convert_to_tensor(y_pred), self.dtype)
        losses = compute_crossentropy(labels, logits)
        # What is left out may be NaN, and so is 0 times NaN.
        losses = ops.where(counts, losses, 0.0)
        self.add_positions(losses, weights)

    def result(self):
        return ops.exp(super().result())
