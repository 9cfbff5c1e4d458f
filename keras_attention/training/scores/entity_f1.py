"""Precision, recall and F1 of whole entities, from BIO tags and similar ones."""

import keras
import numpy as np
from keras import ops

from keras_attention.core.part import OwnArguments
from keras_attention.training.metrics import read_positions
from keras_attention.training.scores.entity_tags import FIRST, LAST, is_entity_tag


class TagScheme:
    """The entity type of each label of a tag set, and whether it begins or ends an entity.

    A batch of tags is a pair of int tensors (B, T): `begins`, 1 for a `B-` tag or after an `E-`
    tag, and `types`, 0 for `O` and k for the k-th entity type. Entities follow from comparing
    neighbours.

    Args:
        labels: list of str: `O`, `B-X`, `I-X`, or plain `B` and `I` for one type. Or tags of BIOES,
            BILOU or BMES: `S-X` and `U-X` are single tokens, `E-X` and `L-X` last ones.
    """

    def __init__(self, labels):
        labels = list(labels)
        if wrong := [tag for tag in labels if not (is_entity_tag(tag) or tag in ("B", "I"))]:
            raise ValueError(
                f"labels has {', '.join(map(repr, wrong))}, which is no BIO tag: expected 'O', "
                "'B-<type>' or 'I-<type>', or tags of BIOES, BILOU or BMES."
            )
        kinds = [None if tag == "O" else tag[2:] for tag in labels]
        self.types = tuple(sorted({kind for kind in kinds if kind is not None}))
        if not self.types:
            raise ValueError(f"labels={labels} names no entity: expected 'B-<type>' tags.")
        self._begins = np.array([tag[:1] in tuple(FIRST) for tag in labels], "int32")
        self._ends = np.array([tag[:1] in tuple(LAST) for tag in labels], "int32")
        numbers = [0 if kind is None else 1 + self.types.index(kind) for kind in kinds]
        self._types = np.array(numbers, "int32")

    def read(self, labels):
        """Convert label ids (B, T) to `begins` and `types`. Ids below 0 are read as `O`."""
        valid = ops.cast(labels >= 0, "int32")
        labels = ops.maximum(labels, 0)
        begins, ends, types = (
            ops.take(ops.convert_to_tensor(table), labels, axis=0) * valid
            for table in (self._begins, self._ends, self._types)
        )
        return ops.maximum(begins, _shift(ends, 1)), types


def left_align(true, predicted, weights):
    """Move the positions of weight 0 to the end of each row, and set both tags there to -1.

    All three arguments are (B, T).
    """
    counts = ops.not_equal(weights, 0)
    length = ops.shape(true)[1]
    position = ops.broadcast_to(ops.expand_dims(ops.arange(length), 0), ops.shape(true))
    # Distinct keys: no backend needs a stable sort.
    order = ops.argsort(
        position + length * ops.cast(ops.logical_not(counts), position.dtype), axis=1
    )
    true, predicted = ops.where(counts, true, -1), ops.where(counts, predicted, -1)
    return tuple(ops.take_along_axis(x, order, axis=1) for x in (true, predicted, weights))


def find_starts_and_ends(begins, types):
    """Return the first and the last tokens of entities: two bool tensors (B, T)."""
    inside = types > 0
    before, after = _shift(types, 1), _shift(types, -1)
    # An `I-` continues what is before it only if the types agree: `O` has type 0.
    starts = ops.logical_and(inside, ops.logical_or(begins > 0, ops.not_equal(before, types)))
    next_begins = _shift(begins, -1) > 0
    ends = ops.logical_and(inside, ops.logical_or(next_begins, ops.not_equal(after, types)))
    return starts, ends


def _shift(x, by):
    """Moves columns of (B, T) by one to the right (1) or left (-1). 0 comes in."""
    edge = ops.zeros_like(x[:, :1])
    parts = [edge, x[:, :-1]] if by == 1 else [x[:, 1:], edge]
    return ops.concatenate(parts, axis=1)


def find_agreeing(true, predicted):
    """Bool (B, T): for the tokens of each true entity, whether the prediction has the same entity.

    It has if types, starts and ends agree at every token of the entity: the predicted entity then
    begins and ends there, and nothing begins or ends in between.
    """
    starts, ends = find_starts_and_ends(*true)
    predicted_starts, predicted_ends = find_starts_and_ends(*predicted)
    same = ops.logical_and(ops.equal(starts, predicted_starts), ops.equal(ends, predicted_ends))
    same = ops.logical_and(same, ops.equal(true[1], predicted[1]))
    wrong = ops.logical_and(true[1] > 0, ops.logical_not(same))
    # Entities are numbered from 1 through the batch, and errors are summed for each.
    flat = (ops.shape(starts)[0] * ops.shape(starts)[1],)
    number = ops.cumsum(ops.cast(ops.reshape(starts, flat), "int32"))
    errors = ops.segment_sum(
        ops.cast(ops.reshape(wrong, flat), "int32"), number, num_segments=flat[0] + 1
    )
    return ops.reshape(ops.equal(ops.take(errors, number, axis=0), 0), ops.shape(starts))


AVERAGES = ("micro", "macro", "weighted", None)


class EntityMetric(OwnArguments, keras.metrics.Metric):
    """Counts the true, the predicted and the correctly predicted entities."""

    own_arguments = ("labels", "average", "ignore_class")

    def __init__(self, labels, average="micro", ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name or self.default_name, dtype=dtype)
        if average not in AVERAGES:
            raise ValueError(
                f"{type(self).__name__}(average={average!r}): average must be one of "
                f"{', '.join(map(repr, AVERAGES))}."
            )
        self.scheme = TagScheme(labels)
        self.labels, self.average, self.ignore_class = list(labels), average, ignore_class
        shape = (len(self.scheme.types),)
        self.actual = self.add_variable(shape, "zeros", name="actual")
        self.predicted = self.add_variable(shape, "zeros", name="predicted")
        self.correct = self.add_variable(shape, "zeros", name="correct")

    @property
    def types(self):
        """The entity types, in the order of the scores of `average=None`."""
        return list(self.scheme.types)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add the entities of a batch.

        Args:
            y_true: int labels (B, T).
            y_pred: logits or probabilities (B, T, L).
            sample_weight: (B,) or (B, T). An entity has the weight of its first token. Tokens of
                weight 0 are left out like padding.
        """
        true, weights = read_positions(self, y_true, y_pred, sample_weight)
        predicted = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        true, predicted, weights = left_align(true, predicted, weights)
        true, predicted = self.scheme.read(true), self.scheme.read(predicted)
        true_starts, predicted_starts = (
            find_starts_and_ends(*true)[0],
            find_starts_and_ends(*predicted)[0],
        )
        right = ops.logical_and(true_starts, find_agreeing(true, predicted))
        self.actual.assign_add(self._count(true_starts, true[1], weights))
        self.predicted.assign_add(self._count(predicted_starts, predicted[1], weights))
        self.correct.assign_add(self._count(right, true[1], weights))

    def _count(self, starts, types, weights):
        """Return the weighted number of entities of each type, from (B, T) each."""
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
        # A type that neither occurs nor is predicted has no score to average.
        present = ops.cast(actual + predicted > 0, self.dtype)
        shares = present if self.average == "macro" else actual
        return ops.divide_no_nan(ops.sum(scores * shares), ops.sum(shares))

    def score(self, actual, predicted, correct):
        raise NotImplementedError(f"{type(self).__name__}.score")


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityF1(EntityMetric):
    """F1 of entities: 2 · precision · recall / (precision + recall).

    Tags are those of BIO, BIOES, BILOU or BMES. An entity is right if its first token, its last
    token and its type are. The result equals `seqeval.metrics.f1_score` in its default mode, which
    reads tags like the CoNLL evaluation script: `I-X` after `O`, or after another type, begins an
    entity too. Counts are summed over batches.

    Args:
        labels: list of str, the tag of every class.
        average: `"micro"` over all entities; `"macro"`, the mean over types; `"weighted"` by the
            number of entities of each type. None for a score per type, in the order of `types`.
        ignore_class: int, the label of positions to leave out, such as padding or the later pieces
            of a word. An entity continues across them.

    `EntityPrecision` and `EntityRecall` take the same arguments. `update_state` describes shapes.

    ```python
    import numpy as np
    import keras_attention as ka

    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    f1 = ka.training.EntityF1(labels)
    predicted = np.eye(5)[[[1, 2, 0, 3, 0], [3, 0, 0, 0, 0]]]  # one location too many
    f1.update_state(np.array([[1, 2, 0, 3, -1], [0, 0, 0, -1, -1]]), predicted)
    assert abs(float(f1.result()) - 0.8) < 1e-6  # 2 of 2 found, 2 of 3 right
    ```
    """

    default_name = "entity_f1"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(2 * correct, actual + predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityPrecision(EntityMetric):
    """The share of predicted entities that are right. Arguments as for `EntityF1`."""

    default_name = "entity_precision"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityRecall(EntityMetric):
    """The share of entities that are found. Arguments as for `EntityF1`."""

    default_name = "entity_recall"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, actual)
