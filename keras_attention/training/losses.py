"""`MaskedSparseCategoricalCrossentropy`: cross-entropy of int labels that ignores padding."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.training.label_shapes import check_class_weights, match_labels
from keras_attention.training.replicas import GlobalMeanLoss


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalCrossentropy(GlobalMeanLoss):
    """Cross-entropy of int labels from logits that ignores padding.

    It is Keras's `SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)` with label
    smoothing (Szegedy et al., 2016, section 7), which Keras only supports for one-hot labels. With
    L classes, the target is 1 - label_smoothing + label_smoothing / L for the true class and
    label_smoothing / L for every other class.

    Args:
        label_smoothing: float, at least 0 and below 1.
        class_weights: list of L positive floats. The loss of a position is multiplied by the weight
            of its label. None means 1 for every class.
        ignore_class: int, the label of positions to ignore, such as padding.
        reduction: how Keras combines the losses of a batch. The mean is over all positions that are
            not ignored, on all devices together, so it does not depend on the amount of padding.
        dtype: dtype of the loss. None means float32, even under mixed precision.

    Call arguments:
        y_true: int labels (B, T), or of any other shape. A last axis of size 1 is dropped, as in
            Keras.
        y_pred: logits of the shape of `y_true` plus a last axis of L classes. Positions that their
            Keras mask excludes are ignored, too.
        sample_weight: weights of the shape of `y_true` or of its first axes. Weights (B,) belong to
            rows.

    To weight classes, use `class_weights` here and not `class_weight=` of `fit`. Keras would read
    labels (B, T) as one-hot labels and compute a wrong weight for each row.

    ```python
    import numpy as np
    import keras_attention as ka

    loss = ka.training.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1)
    logits = np.random.default_rng(0).normal(size=(2, 5, 7)).astype("float32")
    labels = np.array([[3, 1, 4, -1, -1], [1, 5, 2, 6, 5]])
    padded = np.pad(labels, [(0, 0), (0, 4)], constant_values=-1)
    more = np.pad(logits, [(0, 0), (0, 4), (0, 0)])
    assert abs(float(loss(labels, logits)) - float(loss(padded, more))) < 1e-6
    ```
    """

    default_name = "masked_sparse_categorical_crossentropy"
    own_arguments = ("label_smoothing", "ignore_class", "class_weights")

    def __init__(
        self,
        label_smoothing=0.0,
        ignore_class=-1,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
        class_weights=None,
    ):
        super().__init__(reduction, name, dtype)
        self.label_smoothing, self.ignore_class = label_smoothing, ignore_class
        checks.check_number(self, "label_smoothing", least=0, below=1)
        self.class_weights = check_class_weights("class_weights", class_weights)

    def call(self, y_true, y_pred):
        labels = ops.cast(match_labels(type(self).__name__, y_true, y_pred), "int32")
        counts = ops.not_equal(labels, self.ignore_class)
        # Set the logits of ignored positions to 0: gradients would be NaN if they were not finite.
        logits = ops.where(ops.expand_dims(counts, -1), y_pred, 0.0)
        labels = ops.where(counts, labels, 0)
        losses = compute_crossentropy(labels, logits, self.label_smoothing)
        if self.class_weights is not None:
            if len(self.class_weights) != y_pred.shape[-1]:
                raise ValueError(
                    f"{len(self.class_weights)} class_weights for {y_pred.shape[-1]} classes: give "
                    "one weight for each class."
                )
            weights = ops.convert_to_tensor(self.class_weights, dtype=losses.dtype)
            losses = losses * ops.take(weights, labels)
        losses = ops.where(counts, losses, 0.0)
        keras_internals.set_mask(losses, counts)
        return losses


def compute_crossentropy(labels, logits, label_smoothing=0.0):
    """Compute the cross-entropy (...) of `labels`, int32 (...), under `logits`, float (..., L).

    `label_smoothing` is the probability that the target spreads evenly over all L classes. The
    function does not call the fused losses of the backends, which are slower on a CPU and need
    another pass over the classes for label smoothing. On a CPU TensorFlow raises an error for
    labels outside 0 to L - 1.
    """
    size = ops.shape(logits)[-1]
    classes = ops.arange(size, dtype="int32")
    labels = ops.take(classes, ops.where(labels < 0, size, labels))
    # Subtract the largest logit to avoid overflow.
    logits = logits - ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
    right = ops.where(ops.equal(ops.expand_dims(labels, -1), classes), logits, 0.0)
    losses = ops.log(ops.sum(ops.exp(logits), axis=-1))
    losses = losses - (1 - label_smoothing) * ops.sum(right, axis=-1)
    if label_smoothing:
        losses = losses - label_smoothing * ops.mean(logits, axis=-1)
    return losses
