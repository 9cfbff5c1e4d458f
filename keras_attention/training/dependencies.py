"""Loss and metrics for `ka.models.dependency_parser`."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.training.label_shapes import match_labels, shape_of
from keras_attention.training.losses import compute_crossentropy
from keras_attention.training.metrics import MaskedMean, read_positions
from keras_attention.training.replicas import GlobalMeanLoss


@keras.saving.register_keras_serializable(package="keras_attention")
class DependencyCrossentropy(GlobalMeanLoss):
    """Loss of `ka.models.dependency_parser` (Dozat and Manning, 2017, section 3.2).

    For each word it is the cross-entropy of the head, plus the cross-entropy of the relation to the
    true head. The loss reads both outputs of the parser, and Keras passes only one output to a
    loss. So wrap the parser: `ka.training.JointModel(parser).compile("adam", loss=loss)`.

    Args:
        label_smoothing: float, the share of the target probability that is spread evenly over all
            relations. Heads have no smoothing.
        reduction: how Keras combines the losses of a batch, by default the mean over words.

    Call arguments:
        y_true: dict of int (B, T), padded with -1, as `ka.data.batches` returns it: `"arc_scores"`
            holds the position of each word's head, where 0 is the root, and `"label_scores"` the
            relation to it.
        y_pred: dict of `"arc_scores"` (B, T, T + 1) and `"label_scores"` (B, T, T + 1, L), the
            outputs of `ka.models.dependency_parser` with L relations.

    ```python
    import numpy as np
    import keras_attention as ka

    loss = ka.training.DependencyCrossentropy()
    truth = {"arc_scores": np.array([[2, 0, -1]]), "label_scores": np.array([[1, 0, -1]])}
    scores = {"arc_scores": np.zeros((1, 3, 4)), "label_scores": np.zeros((1, 3, 4, 5))}
    assert abs(float(loss(truth, scores)) - np.log(4) - np.log(5)) < 1e-5
    ```
    """

    default_name, own_arguments = "dependency_crossentropy", ("label_smoothing",)

    def __init__(self, label_smoothing=0.0, reduction="sum_over_batch_size", name=None, dtype=None):
        super().__init__(reduction, name, dtype)
        self.label_smoothing = label_smoothing
        checks.check_number(self, "label_smoothing", least=0, below=1)

    def get_loss_shape(self, y_pred):
        return shape_of(y_pred["arc_scores"])[:-1]

    def call(self, y_true, y_pred):
        heads, relations, counts = _read_truth(self, y_true, y_pred)
        losses = compute_crossentropy(heads, y_pred["arc_scores"])
        labels = _take_heads(y_pred["label_scores"], heads)
        losses = losses + compute_crossentropy(relations, labels, self.label_smoothing)
        losses = ops.where(counts, losses, 0.0)
        keras_internals.set_mask(losses, counts)
        return losses


class AttachmentScore(MaskedMean):
    """Base class: the fraction of words with the right head and, with `labeled`, right relation."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        heads, relations, counts = _read_truth(self, y_true, y_pred)
        predicted = ops.cast(ops.argmax(y_pred["arc_scores"], axis=-1), "int32")
        right = ops.equal(predicted, heads)
        if self.labeled:
            labels = ops.argmax(_take_heads(y_pred["label_scores"], predicted), axis=-1)
            right = ops.logical_and(right, ops.equal(ops.cast(labels, "int32"), relations))
        heads = ops.where(counts, heads, self.ignore_class)
        _, weights = read_positions(self, heads, y_pred["arc_scores"], sample_weight)
        self.add_positions(right, weights)


@keras.saving.register_keras_serializable(package="keras_attention")
class UnlabeledAttachment(AttachmentScore):
    """Unlabeled attachment score (UAS): the fraction of words with the right head.

    The predicted head of a word is the head with the highest score. So the heads of a sentence need
    not form a tree. `y_true` and `y_pred` are the dicts that `DependencyCrossentropy` explains.

    ```python
    import numpy as np
    import keras_attention as ka

    metric = ka.training.UnlabeledAttachment()
    truth = {"arc_scores": np.array([[2, 0, -1]]), "label_scores": np.array([[1, 0, -1]])}
    arcs = np.array([[[0, 0, 9, 0], [0, 9, 0, 0], [0, 0, 0, 0]]], "float32")
    metric.update_state(truth, {"arc_scores": arcs, "label_scores": np.zeros((1, 3, 4, 5))})
    assert float(metric.result()) == 0.5
    ```
    """

    default_name, labeled = "unlabeled_attachment", False


@keras.saving.register_keras_serializable(package="keras_attention")
class LabeledAttachment(AttachmentScore):
    """Labeled attachment score (LAS): the fraction of words with the right head and relation.

    `y_true` and `y_pred` are the dicts that `DependencyCrossentropy` explains.
    """

    default_name, labeled = "labeled_attachment", True


def _read_truth(metric, y_true, y_pred):
    """Return the true heads and relations, and which words are not padding, (B, T) each.

    Heads and relations are 0 in padding. `metric` is named in errors.
    """
    class_name, arcs = type(metric).__name__, y_pred["arc_scores"]
    heads, relations = (
        ops.cast(match_labels(class_name, y_true[name], arcs), "int32")
        for name in ("arc_scores", "label_scores")
    )
    counts = ops.not_equal(heads, -1)
    return ops.where(counts, heads, 0), ops.where(counts, relations, 0), counts


def _take_heads(label_scores, heads):
    """Return the scores (B, T, L) of the relations of each word to one head.

    Args:
        label_scores: (B, T, S, L), for each word, head and relation.
        heads: int (B, T), the index of the head of each word on the axis of size S.
    """
    chosen = ops.expand_dims(ops.expand_dims(heads, -1), -1)
    return ops.take_along_axis(label_scores, chosen, axis=2)[:, :, 0]
