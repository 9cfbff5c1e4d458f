"""Accuracies and perplexity for models with an output for every token. They ignore padding."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_labels, match_weights, shape_of
from keras_attention.training.losses import compute_crossentropy


def read_positions(metric, y_true, y_pred, sample_weight=None):
    """Return labels as int32, and a weight for each label, from the arguments of `update_state`.

    `metric` is the Keras metric, with an attribute `ignore_class`. The other arguments are
    `y_true`, `y_pred` and `sample_weight` of its `update_state`. The weight of a label is its
    sample weight, or 1. The weight is 0 where the label is `metric.ignore_class` or the Keras mask
    of `y_pred` is False.
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
    """Base class of metrics that are a mean over positions. Subclasses implement `update_state`.

    Args:
        ignore_class: int, the label of positions to ignore, such as padding.
    """

    own_arguments = ("ignore_class",)

    def __init__(self, ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name or self.default_name, dtype=dtype)
        self.ignore_class = ignore_class

    def add_positions(self, values, weights):
        """Add `values` to the mean, each with its own weight from `weights` of the same shape.

        `keras.metrics.Mean.update_state` would first average each row. This method sums over all
        axes and does not reshape, because a reshape would gather a batch that is split over
        several devices.
        """
        weights = ops.cast(weights, self.dtype)
        self.total.assign_add(ops.sum(ops.multiply(ops.cast(values, self.dtype), weights)))
        self.count.assign_add(ops.sum(weights))


def find_right(y_true, y_pred):
    """Return where the class with the largest value in `y_pred` is the label `y_true`, bool."""
    return ops.equal(y_true, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalAccuracy(MaskedMean):
    """Accuracy of labels for every token: the fraction of positions with the right class.

    Every position has the same weight. Keras's accuracy gives every *row* of a batch the same
    weight, so a token in a short row counts more than a token in a long row.

    Args:
        ignore_class: int, the label of positions to ignore, such as padding.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any other shape.
        y_pred: logits or probabilities of the shape of `y_true` plus a last axis of classes.
            Positions that their Keras mask excludes are ignored, too.
        sample_weight: weights of the shape of `y_true` or of its first axes.

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
    """Fraction of rows in which the predicted class is right at every position.

    For a decoder that reads the true tokens in training, the result is the fraction of rows that
    greedy decoding reproduces exactly.

    Args:
        ignore_class: int, the label of positions to ignore, such as padding. Rows without any other
            label do not count.

    Call arguments of `update_state`:
        y_true: int labels (B, T).
        y_pred: logits or probabilities (B, T, L) of L classes, with an optional Keras mask (B, T).
        sample_weight: (B,) or (B, T). Positions of weight 0 are ignored. The weight of a row is the
            largest weight of its positions.

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
                "positions: expected (B, T). If each row has one label, use "
                "MaskedSparseCategoricalAccuracy."
            )
        right = find_right(labels, y_pred)
        right = ops.all(ops.logical_or(right, ops.equal(weights, 0)), axis=-1)  # (B,)
        super().update_state(right, ops.max(weights, axis=-1))


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedPerplexity(MaskedMean):
    """Perplexity of a language model: exp of the mean cross-entropy of the tokens.

    The class has the arguments of `MaskedSparseCategoricalAccuracy`, except that `y_pred` must be
    logits, not probabilities. Every token of an epoch has the same weight.

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
        # Losses of ignored positions may be NaN, and a weight of 0 would not remove them.
        losses = ops.where(counts, losses, 0.0)
        self.add_positions(losses, weights)

    def result(self):
        return ops.exp(super().result())
