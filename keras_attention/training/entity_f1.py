"""Precision, recall and F1 of whole entities, from BIO tags."""

import keras
from keras import ops

from keras_attention.training.position_weights import position_weights
from keras_attention.training.spans import Scheme, agreeing, left_align, starts_and_ends

AVERAGES = ("micro", "macro", "weighted", None)


class EntityMetric(keras.metrics.Metric):
    """Counts entities: those there are, those predicted, and those predicted right."""

    def __init__(self, labels, average="micro", ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        if average not in AVERAGES:
            raise ValueError(
                f"{type(self).__name__}(average={average!r}): average must be one of "
                f"{', '.join(map(repr, AVERAGES))}."
            )
        self.scheme = Scheme(labels)
        self.labels, self.average, self.ignore_class = list(labels), average, ignore_class
        shape = (len(self.scheme.types),)
        self.actual = self.add_variable(shape, "zeros", name="actual")
        self.predicted = self.add_variable(shape, "zeros", name="predicted")
        self.correct = self.add_variable(shape, "zeros", name="correct")

    @property
    def types(self):
        """The kinds of entities, in the order of the scores that `average=None` returns."""
        return list(self.scheme.types)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the entities of a batch.

        Args:
            y_true: int labels (B, T).
            y_pred: logits or probabilities (B, T, L).
            sample_weight: (B,) or (B, T). An entity has the weight of its first token; tokens of
                weight 0 are left out as padding is.
        """
        weights = position_weights(y_true, y_pred, sample_weight, self.ignore_class, self.dtype)
        true = ops.cast(y_true, "int32")
        predicted = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        true, predicted, weights = left_align(true, predicted, weights)
        true, predicted = self.scheme.read(true), self.scheme.read(predicted)
        true_starts, predicted_starts = starts_and_ends(*true)[0], starts_and_ends(*predicted)[0]
        right = ops.logical_and(true_starts, agreeing(true, predicted))
        self.actual.assign_add(self._count(true_starts, true[1], weights))
        self.predicted.assign_add(self._count(predicted_starts, predicted[1], weights))
        self.correct.assign_add(self._count(right, true[1], weights))

    def _count(self, starts, types, weights):
        """Weighted number of entities of each type; `starts`, `types`, `weights` (B, T)."""
        each = ops.one_hot(types - 1, len(self.scheme.types), dtype=self.dtype)  # (B, T, types)
        return ops.sum(each * ops.expand_dims(ops.cast(starts, self.dtype) * weights, -1), (0, 1))

    def result(self):
        actual, predicted, correct = (
            ops.convert_to_tensor(count) for count in (self.actual, self.predicted, self.correct)
        )
        if self.average == "micro":
            return self.score(ops.sum(actual), ops.sum(predicted), ops.sum(correct))
        scores = self.score(actual, predicted, correct)
        if self.average is None:
            return scores
        # A type that is neither there nor predicted has no score to average.
        present = ops.cast(actual + predicted > 0, self.dtype)
        shares = present if self.average == "macro" else actual
        return ops.divide_no_nan(ops.sum(scores * shares), ops.sum(shares))

    def score(self, actual, predicted, correct):
        raise NotImplementedError(f"{type(self).__name__}.score")

    def get_config(self):
        config = {"labels": self.labels, "average": self.average, "ignore_class": self.ignore_class}
        return {**super().get_config(), **config}


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityF1(EntityMetric):
    """F1 of entities over BIO tags: 2 · precision · recall / (precision + recall).

    An entity counts as found only if its first token, its last token and its type are all right.
    Equal to `seqeval.metrics.f1_score` in its default mode, which reads tags as the CoNLL
    evaluation script does: `I-X` after `O`, or after another type, begins an entity too.
    Counts are summed over batches, so that the score is the whole data set's.

    Args:
        labels: list of str, the tag of every class: `O`, `B-X` and `I-X`.
        average: `"micro"` over all entities; `"macro"`, the mean over types; `"weighted"`, by the
            number of entities of each type; None for a score per type, in the order of `types`.
        ignore_class: int, the label of positions that are left out, such as padding, or the later
            pieces of a word: an entity goes on across them.
        name: str.
        dtype: of the counts.

    `EntityPrecision` and `EntityRecall` take the same arguments. See `update_state` for shapes.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    f1 = ka.training.EntityF1(labels)
    predicted = np.eye(5)[[[1, 2, 0, 3, 0], [3, 0, 0, 0, 0]]]  # one place too many
    f1.update_state(np.array([[1, 2, 0, 3, -1], [0, 0, 0, -1, -1]]), predicted)
    assert abs(float(f1.result()) - 0.8) < 1e-6  # 2 of 2 found, 2 of 3 right
    ```
    """

    def __init__(self, labels, average="micro", ignore_class=-1, name="entity_f1", dtype=None):
        super().__init__(labels, average, ignore_class, name=name, dtype=dtype)

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(2 * correct, actual + predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityPrecision(EntityMetric):
    """The share of predicted entities that are right. Arguments as for `EntityF1`."""

    def __init__(
        self, labels, average="micro", ignore_class=-1, name="entity_precision", dtype=None
    ):
        super().__init__(labels, average, ignore_class, name=name, dtype=dtype)

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityRecall(EntityMetric):
    """The share of entities that are found. Arguments as for `EntityF1`."""

    def __init__(self, labels, average="micro", ignore_class=-1, name="entity_recall", dtype=None):
        super().__init__(labels, average, ignore_class, name=name, dtype=dtype)

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, actual)
