"""Sparse cross-entropy from logits, with label smoothing and without padding."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.training.label_shapes import check_class_weights, match_labels
from keras_attention.training.replicas import GlobalMeanLoss


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalCrossentropy(GlobalMeanLoss):
    """Sparse cross-entropy from logits that leaves out labels equal to `ignore_class`.

    It is Keras's `SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)` with label
    smoothing (Szegedy et al., 2016, section 7), which Keras has for one-hot labels only. Of L
    classes, the target of the right one is 1 - label_smoothing + label_smoothing / L, and the
    others have label_smoothing / L.

    Args:
        label_smoothing: float, 0 to below 1.
        class_weights: list of L floats above 0. A position has the weight of its label. None for 1.
        ignore_class: int, the label of positions to leave out, such as padding.
        reduction: as in every Keras loss. The mean is over the positions that count, on all devices
            together, so that more padding changes nothing. It is 0 if nothing counts.
        dtype: None for float32, also under mixed precision.

    Call arguments:
        y_true: int labels (B, T), or of any shape. A last axis of size 1 is dropped, as in Keras.
        y_pred: logits, the shape of `y_true` and an axis of L classes. A padding mask on them
            leaves positions out, too.
        sample_weight: in the shape of `y_true` or of its first axes: (B,) are weights of rows. (Use
            `class_weights`, not `class_weight=` of `fit`: Keras takes labels (B, T) for one-hot
            labels and computes a wrong weight for each row.)

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
        # Logits of ignored positions become 0: if they were not finite, nor would gradients be.
        logits = ops.where(ops.expand_dims(counts, -1), y_pred, 0.0)
        labels = ops.where(counts, labels, 0)
        losses = compute_crossentropy(labels, logits, self.label_smoothing)
        if self.class_weights is not None:
            if len(self.class_weights) != y_pred.shape[-1]:
                raise ValueError(
                    f"{len(self.class_weights)} class_weights for {y_pred.shape[-1]} classes: give "
                    "one for each class."
                )
            weights = ops.convert_to_tensor(self.class_weights, dtype=losses.dtype)
            losses = losses * ops.take(weights, labels)
        losses = ops.where(counts, losses, 0.0)
        keras_internals.set_mask(losses, counts)
        return losses


def compute_crossentropy(labels, logits, label_smoothing=0.0):
    """Compute -log of the probabilities of `labels`, with label smoothing.

    The fused losses of the backends are slower on a CPU, and need another pass over the classes for
    smoothing.

    Args:
        labels: int32 (...), below L. On CPUs TensorFlow raises an error otherwise.
        logits: floats (..., L).

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
