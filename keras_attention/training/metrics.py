"""Accuracies and perplexity without padding."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_labels, match_weights, shape_of
from keras_attention.training.losses import compute_crossentropy


def read_positions(metric, y_true, y_pred, sample_weight=None):
    """Return the label and the weight of every position. Ignored and masked ones have weight 0.

    Args:
        metric: with an `ignore_class`.
        y_true: int labels.
        y_pred: logits or probabilities, the shape of the labels and an axis of classes.
        sample_weight: in the shape of the labels, or of its first axes, or None.

    Returns:
        int32 labels, and weights in the metric's dtype, of one shape.
    """
    name = type(metric).__name__
    labels = match_labels(name, y_true, y_pred)
    weights = ops.cast(ops.not_equal(labels, metric.ignore_class), metric.dtype)
    mask = keras_internals.get_mask(y_pred)
    if mask is not None:
        weights = weights * ops.cast(mask, metric.dtype)
    if sample_weight is not None:
        weights = weights * match_weights(name, sample_weight, shape_of(labels), metric.dtype)
    return ops.cast(labels, "int32"), weights


class MaskedMean(OwnArguments, keras.metrics.Mean):
    """A mean over the positions that count. Subclasses define the values in `update_state`.

    Args:
        ignore_class: int, the label of positions to leave out, such as padding.
    """

    own_arguments = ("ignore_class",)

    def __init__(self, ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name or self.default_name, dtype=dtype)
        self.ignore_class = ignore_class

    def add_positions(self, values, weights):
        """Add each position with its own weight. Keras's mean first averages rows.

        A sum of all axes leaves a batch split among devices. A reshape would gather it.
        """
        weights = ops.cast(weights, self.dtype)
        self.total.assign_add(ops.sum(ops.multiply(ops.cast(values, self.dtype), weights)))
        self.count.assign_add(ops.sum(weights))


def find_right(y_true, y_pred):
    """Return where the largest of `y_pred` (..., L) is that of the label, as bool."""
    return ops.equal(y_true, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalAccuracy(MaskedMean):
    """Share of positions whose largest logit is that of the label.

    Every position has the same weight. Keras's mean gives every *row* of a batch the same weight,
    so that tokens count differently in batches of different lengths.

    Args:
        ignore_class: int, the label of positions to leave out, such as padding.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any shape.
        y_pred: logits or probabilities, the shape of `y_true` and an axis of classes. A padding
            mask on them leaves positions out, too.
        sample_weight: in the shape of `y_true` or of its first axes.

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
    """Share of rows in which the largest logit is that of the label at every position.

    For a decoder with teacher forcing this is the share of rows that greedy decoding generates
    exactly.

    Args:
        ignore_class: int, the label of positions to leave out, such as padding. Rows without any
            other position do not count.

    Call arguments of `update_state`:
        y_true: int labels (B, T).
        y_pred: logits or probabilities (B, T, L), with or without a padding mask.
        sample_weight: (B,) or (B, T). Positions of weight 0 are left out. The weight of a row is
            the largest of its positions.

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
    """Perplexity: e to the power of the mean cross-entropy of a token, without label smoothing.

    Arguments are those of `MaskedSparseCategoricalAccuracy`, but `y_pred` are logits. Every token
    of an epoch has the same weight.

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
        # Losses of ignored positions may be NaN, and so is 0 times NaN.
        losses = ops.where(counts, losses, 0.0)
        self.add_positions(losses, weights)

    def result(self):
        return ops.exp(super().result())
