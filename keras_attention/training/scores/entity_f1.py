"""Metrics for named entities: precision, recall and F1 of whole entities, from BIO tags."""

import keras
import numpy as np
from keras import ops

from keras_attention.core.entity_tags import FIRST, LAST, is_entity_tag
from keras_attention.core.part import OwnArguments
from keras_attention.training.metrics import read_positions


class TagScheme:
    """Reads tensors of label ids as entity tags, to find entities in them.

    `read` returns two int tensors (B, T). `begins` is 1 for a tag that begins an entity (such as
    `B-X`), and after a tag that ends an entity (such as `E-X`), else 0. `types` is 0 for `O` and k
    for the k-th entity type. To find the entities, compare neighboring tokens in these tensors.

    Args:
        labels: list of str, the tag of every class. Either BIO: `O`, `B-X` and `I-X`, or plain `B`
            and `I` for a single type. Or BIOES, BILOU or BMES, where `S-X` and `U-X` are entities
            of one token, and `E-X` and `L-X` mark the last token.
    """

    def __init__(self, labels):
        labels = list(labels)
        if wrong := [tag for tag in labels if not (is_entity_tag(tag) or tag in ("B", "I"))]:
            raise ValueError(
                f"labels has {', '.join(map(repr, wrong))}: expected the BIO tags 'O', 'B-<type>' "
                "or 'I-<type>', or tags of BIOES, BILOU or BMES."
            )
        kinds = [None if tag == "O" else tag[2:] for tag in labels]
        self.types = tuple(sorted({kind for kind in kinds if kind is not None}))
        if not self.types:
            raise ValueError(f"labels={labels} has no entity type: expected 'B-<type>' tags.")
        self._begins = np.array([tag[:1] in tuple(FIRST) for tag in labels], "int32")
        self._ends = np.array([tag[:1] in tuple(LAST) for tag in labels], "int32")
        numbers = [0 if kind is None else 1 + self.types.index(kind) for kind in kinds]
        self._types = np.array(numbers, "int32")

    def read(self, labels):
        """Return the tensors `begins` and `types`, both int (B, T), for label ids (B, T).

        `TagScheme` explains the two tensors. Negative ids are read as `O`.
        """
        valid = ops.cast(labels >= 0, "int32")
        labels = ops.maximum(labels, 0)
        begins, ends, types = (
            ops.take(ops.convert_to_tensor(table), labels, axis=0) * valid
            for table in (self._begins, self._ends, self._types)
        )
        return ops.maximum(begins, _shift(ends, 1)), types


def left_align(true, predicted, weights):
    """Move the positions of weight 0 to the end of each row, and set their labels to -1.

    Args:
        true, predicted: int (B, T), label ids.
        weights: float (B, T).

    Returns:
        A tuple of the three tensors in the new order.
    """
    counts = ops.not_equal(weights, 0)
    length = ops.shape(true)[1]
    position = ops.broadcast_to(ops.expand_dims(ops.arange(length), 0), ops.shape(true))
    # All keys are distinct, so the sort need not be stable.
    order = ops.argsort(
        position + length * ops.cast(ops.logical_not(counts), position.dtype), axis=1
    )
    true, predicted = ops.where(counts, true, -1), ops.where(counts, predicted, -1)
    return tuple(ops.take_along_axis(x, order, axis=1) for x in (true, predicted, weights))


def find_starts_and_ends(begins, types):
    """Return where entities start and end, two bool tensors (B, T).

    The first is True at the first token of each entity, the second at the last token. `begins` and
    `types` are from `TagScheme.read`.
    """
    inside = types > 0
    before, after = _shift(types, 1), _shift(types, -1)
    # An `I-X` tag continues an entity only if the types agree. `O` has type 0.
    starts = ops.logical_and(inside, ops.logical_or(begins > 0, ops.not_equal(before, types)))
    next_begins = _shift(begins, -1) > 0
    ends = ops.logical_and(inside, ops.logical_or(next_begins, ops.not_equal(after, types)))
    return starts, ends


def _shift(x, by):
    """Return x (B, T) with its columns moved right (`by=1`) or left (`by=-1`), filled with 0."""
    edge = ops.zeros_like(x[:, :1])
    parts = [edge, x[:, :-1]] if by == 1 else [x[:, 1:], edge]
    return ops.concatenate(parts, axis=1)


def find_agreeing(true, predicted):
    """Return a bool tensor (B, T) that is True for the tokens of true entities that are predicted.

    An entity is predicted if types, starts and ends agree at each of its tokens. `true` and
    `predicted` are pairs (begins, types) from `TagScheme.read`.
    """
    starts, ends = find_starts_and_ends(*true)
    predicted_starts, predicted_ends = find_starts_and_ends(*predicted)
    same = ops.logical_and(ops.equal(starts, predicted_starts), ops.equal(ends, predicted_ends))
    same = ops.logical_and(same, ops.equal(true[1], predicted[1]))
    wrong = ops.logical_and(true[1] > 0, ops.logical_not(same))
    # Number the entities of the whole batch, starting at 1, and count the errors in each of them.
    flat = (ops.shape(starts)[0] * ops.shape(starts)[1],)
    number = ops.cumsum(ops.cast(ops.reshape(starts, flat), "int32"))
    errors = ops.segment_sum(
        ops.cast(ops.reshape(wrong, flat), "int32"), number, num_segments=flat[0] + 1
    )
    return ops.reshape(ops.equal(ops.take(errors, number, axis=0), 0), ops.shape(starts))


AVERAGES = ("micro", "macro", "weighted", None)


class EntityMetric(OwnArguments, keras.metrics.Metric):
    """Base class of metrics that count the true, predicted and correctly predicted entities.

    A subclass defines the method `score`, which computes a score from these counts.
    """

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
        """Return the list of entity types. The scores with `average=None` have this order."""
        return list(self.scheme.types)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Count the entities of a batch.

        Args:
            y_true: int labels (B, T).
            y_pred: logits or probabilities (B, T, L) of L labels.
            sample_weight: (B,) or (B, T). An entity has the weight of its first token. Tokens of
                weight 0 are ignored like padding.
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
        """Return the weighted number of entities of each type.

        `starts`, bool, is True where an entity begins, `types` is its type, and `weights` its
        weight. All three are (B, T).
        """
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
        # Leave types that neither occur nor are predicted out of the mean.
        present = ops.cast(actual + predicted > 0, self.dtype)
        shares = present if self.average == "macro" else actual
        return ops.divide_no_nan(ops.sum(scores * shares), ops.sum(shares))

    def score(self, actual, predicted, correct):
        raise NotImplementedError(f"{type(self).__name__}.score")


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityF1(EntityMetric):
    """F1 of named entities: 2 · precision · recall / (precision + recall).

    The tags are BIO, BIOES, BILOU or BMES. A predicted entity is right if its first token, its last
    token and its type are right. The result equals `seqeval.metrics.f1_score` in its default mode,
    which reads tags like the CoNLL evaluation script: an `I-X` tag after `O` or after another type
    also begins an entity. Counts are summed over batches.

    Args:
        labels: list of str, the tag of every class.
        average: `"micro"` scores all entities together. `"macro"` is the mean over the types that
            occur in labels or predictions, and `"weighted"` the mean weighted by the number of
            entities of each type. None returns one score per type, in the order of the attribute
            `types`.
        ignore_class: int, the label of positions to ignore, such as padding or all subwords of a
            word but the first. The metric reads labels and predictions as if these positions were
            not there.

    `EntityPrecision` and `EntityRecall` have the same arguments. For shapes see `update_state`.

    ```python
    import numpy as np
    import keras_attention as ka

    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    f1 = ka.training.EntityF1(labels)
    predicted = np.eye(5)[[[1, 2, 0, 3, 0], [3, 0, 0, 0, 0]]]  # one location too many
    f1.update_state(np.array([[1, 2, 0, 3, -1], [0, 0, 0, -1, -1]]), predicted)
    assert abs(float(f1.result()) - 0.8) < 1e-6  # recall 2 of 2, precision 2 of 3
    ```
    """

    default_name = "entity_f1"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(2 * correct, actual + predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityPrecision(EntityMetric):
    """The fraction of predicted entities that are right. `EntityF1` explains the arguments."""

    default_name = "entity_precision"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, predicted)


@keras.saving.register_keras_serializable(package="keras_attention")
class EntityRecall(EntityMetric):
    """The fraction of true entities that are predicted. `EntityF1` explains the arguments."""

    default_name = "entity_recall"

    def score(self, actual, predicted, correct):
        return ops.divide_no_nan(correct, actual)
