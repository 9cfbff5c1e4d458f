"""Loss and metrics of dependency parsers."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.training.label_shapes import match_labels, shape_of
from keras_attention.training.losses import compute_crossentropy
from keras_attention.training.metrics import MaskedMean, read_positions
from keras_attention.training.replicas import GlobalMeanLoss


@keras.saving.register_keras_serializable(package="keras_attention")
class DependencyCrossentropy(GlobalMeanLoss):
    """Cross-entropy of each word's head, plus that of its relation to the true head.

    (Dozat and Manning, 2017, section 3.2.)

    Args:
        label_smoothing: float, for relations, as in `MaskedSparseCategoricalCrossentropy`.
        reduction: as in every Keras loss. The mean is over words.

    Call arguments:
        y_true: dict of int (B, T), padded with -1: `"arc_scores"`, the heads, and `"label_scores"`,
            the relations, as `ka.data.batches` gives them.
        y_pred: dict of `"arc_scores"` (B, T, T + 1) and `"label_scores"` (B, T, T + 1, L), the
            outputs of `ka.models.dependency_parser`.

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
    """Share of words with the right head, and in subclasses with the right relation."""

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
    """Share of words whose best head is right (UAS), before heads are made a tree.

    Call arguments of `update_state` are those of `DependencyCrossentropy`.

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
    """Share of words whose best head and its relation are right (LAS).

    Arguments are those of `UnlabeledAttachment`.
    """

    default_name, labeled = "labeled_attachment", True


def _read_truth(metric, y_true, y_pred):
    """Return heads, relations and whether they count, (B, T). They are 0 where they do not."""
    class_name, arcs = type(metric).__name__, y_pred["arc_scores"]
    heads, relations = (
        ops.cast(match_labels(class_name, y_true[name], arcs), "int32")
        for name in ("arc_scores", "label_scores")
    )
    counts = ops.not_equal(heads, -1)
    return ops.where(counts, heads, 0), ops.where(counts, relations, 0), counts


def _take_heads(label_scores, heads):
    """Return the relation scores (B, T, L) of the heads (B, T), from (B, T, S, L)."""
    chosen = ops.expand_dims(ops.expand_dims(heads, -1), -1)
    return ops.take_along_axis(label_scores, chosen, axis=2)[:, :, 0]
