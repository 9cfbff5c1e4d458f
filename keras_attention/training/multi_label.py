"""Loss, metric, thresholds and scores of texts that have any number of labels."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks import check_whole_number
from keras_attention.training.label_shapes import match_targets, match_weights
from keras_attention.training.replicas import GlobalMeanLoss

BINS = 100  # thresholds that `MacroF1` tries


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiLabelCrossentropy(GlobalMeanLoss):
    """The mean of the binary cross-entropies of all labels, from logits.

    Keras's `BinaryCrossentropy(from_logits=True)`, plus a weight for each label where it is true,
    so that rare labels count (PyTorch's `pos_weight`).

    Args:
        positive_weights: list of float, one for each label; None for 1.
        label_smoothing: float, 0 to below 1: targets are moved so far towards 0.5.
        reduction, name: as in every Keras loss.
        dtype: computed in float32 unless said otherwise, also under mixed precision.

    Call arguments:
        y_true: zeros and ones (B, L).
        y_pred: logits (B, L).
        sample_weight: (B,).

    Example:

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

    def __init__(
        self,
        positive_weights=None,
        label_smoothing=0.0,
        reduction="sum_over_batch_size",
        name="multi_label_crossentropy",
        dtype=None,
    ):
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                f"label_smoothing={label_smoothing}: expected a number from 0 to below 1."
            )
        super().__init__(name=name, reduction=reduction, dtype=dtype or "float32")
        if positive_weights is not None:
            positive_weights = [float(weight) for weight in positive_weights]
            if not all(0 < weight < float("inf") for weight in positive_weights):
                raise ValueError(
                    f"positive_weights={positive_weights}: expected numbers above 0, one for each "
                    "label."
                )
        self.positive_weights, self.label_smoothing = positive_weights, label_smoothing

    def call(self, y_true, y_pred):
        labels = match_targets(type(self).__name__, y_true, y_pred)
        labels = labels * (1.0 - self.label_smoothing) + 0.5 * self.label_smoothing
        # -log sigmoid(x) is softplus(-x), which no logit makes infinite.
        positive, negative = ops.softplus(-y_pred), ops.softplus(y_pred)
        if self.positive_weights is not None:
            weights = ops.convert_to_tensor(self.positive_weights, dtype=positive.dtype)
            positive = positive * weights
        return ops.mean(labels * positive + (1.0 - labels) * negative, axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "positive_weights": self.positive_weights,
            "label_smoothing": self.label_smoothing,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class MacroF1(keras.metrics.Metric):
    """The mean F1 of all labels, each with the threshold that suits it best.

    What a model can reach whose thresholds are chosen on these examples, so that epochs compare
    before any is chosen. It is `find_label_thresholds`'s F1, of 99 thresholds and not of all.

    Args:
        num_labels: int, L.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: zeros and ones (B, L).
        y_pred: logits (B, L).
        sample_weight: (B,).

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    f1 = ka.training.MacroF1(num_labels=2)
    labels = np.array([[1, 0], [0, 0], [1, 1]])
    f1.update_state(labels, np.array([[-1.0, 0.0], [-2.0, 1.0], [3.0, 0.5]]))
    assert round(float(f1.result()), 3) == 0.833  # 1 between -2 and -1; 2/3 below 0.5
    ```
    """

    def __init__(self, num_labels, name="macro_f1", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.num_labels = check_whole_number("MacroF1", "num_labels", num_labels)
        shape = (BINS, num_labels)
        self.positives = self.add_variable(shape, "zeros", name="positives")
        self.negatives = self.add_variable(shape, "zeros", name="negatives")

    def update_state(self, y_true, y_pred, sample_weight=None):
        owner = type(self).__name__
        labels = ops.cast(match_targets(owner, y_true, y_pred), "float32")
        shares = ops.sigmoid(ops.cast(y_pred, "float32"))
        bins = ops.clip(ops.cast(ops.floor(shares * BINS), "int32"), 0, BINS - 1)
        rows = ops.one_hot(bins, BINS, axis=1, dtype="float32")  # (B, bins, L)
        if sample_weight is not None:
            weights = match_weights(owner, sample_weight, labels.shape[:1], "float32")
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

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels}


def score_label_sets(labels, predicted):
    """F1 of sets of labels, as scikit-learn's `f1_score` computes it.

    Args:
        labels: zeros and ones (n, L), what is right.
        predicted: zeros and ones (n, L).

    Returns:
        dict: `"macro_f1"`, the mean of the labels' F1; `"micro_f1"`, of all decisions together; and
        `"sample_f1"`, the mean of the examples' F1. Where there is neither a label nor a
        prediction, F1 is 0.

    Example:

    ```python
    import keras_attention as ka

    scores = ka.training.score_label_sets([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    assert {name: round(score, 3) for name, score in scores.items()} == {
        "macro_f1": 0.833,
        "micro_f1": 0.8,
        "sample_f1": 0.833,
    }
    ```
    """
    labels, predicted = (np.asarray(array) > 0 for array in (labels, predicted))
    if labels.shape != predicted.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            f"labels of shape {labels.shape} and predictions of shape {predicted.shape}: expected "
            "both (examples, labels)."
        )
    right, both = labels & predicted, labels.astype("int64") + predicted
    macro = _compute_f1(right.sum(axis=0), both.sum(axis=0))
    sample = _compute_f1(right.sum(axis=1), both.sum(axis=1))
    return {
        "macro_f1": float(macro.mean()),
        "micro_f1": float(_compute_f1(right.sum(), both.sum())),
        "sample_f1": float(sample.mean()),
    }


def _compute_f1(right, both):
    """F1 of the decisions that are right, and of labels and predictions together."""
    return 2.0 * right / np.maximum(both, 1)


def find_label_thresholds(labels, probabilities, shrinkage=0.0):
    """The threshold of each label with which its F1 is highest.

    Of a rare label a handful of examples would decide. With `shrinkage` an example counts by so
    much as its probability says, and by the rest as its label: of 1 it is the F1 that the model
    itself expects (Lipton et al., 2014, *Optimal Thresholding of Classifiers to Maximize F1*).

    A label is given where its probability is above the threshold. It lies halfway between two
    examples, so that none hangs on rounding; of several that are as good it is the highest. A
    label that no example has is never given: its threshold is 1.

    Args:
        labels: zeros and ones (n, L), what is right.
        probabilities: floats (n, L), from 0 to 1.
        shrinkage: float, from 0 to 1.

    Returns:
        float array (L,).

    ```python
    from keras_attention.training import find_label_thresholds

    found = find_label_thresholds([[0], [1], [1], [0]], [[0.125], [0.25], [0.75], [0.0]])
    assert found.tolist() == [0.1875]
    ```
    """
    labels, probabilities = np.asarray(labels) > 0, np.asarray(probabilities, "float64")
    if labels.shape != probabilities.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            f"labels of shape {labels.shape} and probabilities of shape {probabilities.shape}: "
            "expected both (examples, labels)."
        )
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage={shrinkage!r}: expected a number from 0 to 1.")
    counted = (1 - shrinkage) * labels + shrinkage * probabilities
    counted = np.where(labels.any(axis=0), counted, 0.0)
    pairs = zip(counted.T, probabilities.T, strict=True)
    return np.array([_find_threshold(*pair) for pair in pairs])


def _find_threshold(labels, probabilities):
    """The threshold of one label, of how much of it (n,) there is in each example."""
    if not labels.any():
        return 1.0
    order = np.argsort(-probabilities, kind="stable")
    right, shares = np.cumsum(labels[order]), probabilities[order]
    f1 = 2.0 * right / (np.arange(1, len(order) + 1) + labels.sum())
    below = np.append(shares[1:], 0.0)
    apart = shares > below  # a threshold cannot part examples of the same probability
    if not apart.any():
        return 0.0
    best = int(np.argmax(np.where(apart, f1, -1.0)))
    return float((shares[best] + below[best]) / 2)
