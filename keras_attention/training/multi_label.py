"""Loss and metric for multi-label classification: examples with any number of labels."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import check_class_weights, match_targets, match_weights
from keras_attention.training.replicas import GlobalMeanLoss

BINS = 100  # thresholds that `MacroF1` tries


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiLabelCrossentropy(GlobalMeanLoss):
    """Loss for examples with any number of labels: the mean binary cross-entropy of L labels.

    It is Keras's `BinaryCrossentropy(from_logits=True)` with a weight for the positive examples of
    each label (PyTorch's `pos_weight`), so that rare labels count more.

    Args:
        positive_weights: list of L positive floats, one per label. None means 1 for every label.
        label_smoothing: float, at least 0 and below 1, moves targets towards 0.5.
        dtype: dtype of the loss. None means float32, even under mixed precision.

    Call arguments:
        y_true: zeros and ones (B, L).
        y_pred: logits (B, L).
        sample_weight: (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    labels, logits = np.array([[1.0, 0.0]]), np.array([[0.0, 0.0]])
    plain = ka.training.MultiLabelCrossentropy()
    assert abs(float(plain(labels, logits)) - np.log(2)) < 1e-6
    weighted = ka.training.MultiLabelCrossentropy(positive_weights=[3.0, 1.0])
    assert abs(float(weighted(labels, logits)) - 2 * np.log(2)) < 1e-6
    ```
    """

    default_name = "multi_label_crossentropy"
    own_arguments = ("positive_weights", "label_smoothing")

    def __init__(
        self,
        positive_weights=None,
        label_smoothing=0.0,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
    ):
        super().__init__(reduction, name, dtype)
        self.positive_weights = check_class_weights("positive_weights", positive_weights)
        self.label_smoothing = label_smoothing
        checks.check_number(self, "label_smoothing", least=0, below=1)

    def call(self, y_true, y_pred):
        labels = match_targets(type(self).__name__, y_true, y_pred)
        labels = labels * (1.0 - self.label_smoothing) + 0.5 * self.label_smoothing
        # -log sigmoid(x) is softplus(-x), which is finite for every finite logit.
        positive, negative = ops.softplus(-y_pred), ops.softplus(y_pred)
        if self.positive_weights is not None:
            weights = ops.convert_to_tensor(self.positive_weights, dtype=positive.dtype)
            positive = positive * weights
        return ops.mean(labels * positive + (1.0 - labels) * negative, axis=-1)


@keras.saving.register_keras_serializable(package="keras_attention")
class MacroF1(OwnArguments, keras.metrics.Metric):
    """Mean F1 over labels (macro F1) for examples with any number of labels.

    Use this metric to compare epochs during training. A label counts as predicted if its
    probability is above a threshold, and the metric takes the best of 99 thresholds for each label.
    After training, `find_label_thresholds` tries every possible threshold.

    Args:
        num_labels: int, the number of labels L.

    Call arguments of `update_state`:
        y_true: zeros and ones (B, L).
        y_pred: logits (B, L).
        sample_weight: (B,).

    Raises:
        ValueError: the logits are not of shape (B, L).

    ```python
    import numpy as np
    import keras_attention as ka

    f1 = ka.training.MacroF1(num_labels=2)
    labels = np.array([[1, 0], [0, 0], [1, 1]])
    f1.update_state(labels, np.array([[-1.0, 0.0], [-2.0, 1.0], [3.0, 0.5]]))
    assert round(float(f1.result()), 3) == 0.833  # 1 between -2 and -1; 2/3 below 0.5
    ```
    """

    own_arguments = ("num_labels",)

    def __init__(self, num_labels, name="macro_f1", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.num_labels = checks.check_whole_number("MacroF1", "num_labels", num_labels)
        shape = (BINS, num_labels)
        self.positives = self.add_variable(shape, "zeros", name="positives")
        self.negatives = self.add_variable(shape, "zeros", name="negatives")

    def update_state(self, y_true, y_pred, sample_weight=None):
        metric, y_pred = type(self).__name__, ops.convert_to_tensor(y_pred)
        if len(y_pred.shape) != 2 or y_pred.shape[-1] != self.num_labels:
            raise ValueError(
                f"{metric}(num_labels={self.num_labels}) on logits of shape {tuple(y_pred.shape)}: "
                f"expected (batch, {self.num_labels}). Merge other axes into the batch."
            )
        labels = ops.cast(match_targets(metric, y_true, y_pred), "float32")
        shares = ops.sigmoid(ops.cast(y_pred, "float32"))
        bins = ops.clip(ops.cast(ops.floor(shares * BINS), "int32"), 0, BINS - 1)
        rows = ops.one_hot(bins, BINS, axis=1, dtype="float32")  # (B, bins, L)
        if sample_weight is not None:
            weights = match_weights(metric, sample_weight, labels.shape[:1], "float32")
            rows = rows * ops.reshape(weights, (-1, 1, 1))
        positives = ops.einsum("bkl,bl->kl", rows, labels)
        self.positives.assign_add(ops.cast(positives, self.dtype))
        self.negatives.assign_add(ops.cast(ops.sum(rows, axis=0) - positives, self.dtype))

    def result(self):
        true = ops.flip(ops.cumsum(ops.flip(self.positives, 0), axis=0), 0)
        false = ops.flip(ops.cumsum(ops.flip(self.negatives, 0), axis=0), 0)
        every = ops.sum(self.positives, axis=0) + true + false
        f1 = 2.0 * true / ops.maximum(every, 1e-7)
        return ops.mean(ops.max(f1[1:], axis=0))
