"""`InfoNCE` and `ContrastiveAccuracy`: loss and metric for pairs, with the batch as negatives."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.training.label_shapes import match_numbers, match_weights, shape_of
from keras_attention.training.metrics import MaskedMean
from keras_attention.training.replicas import GlobalMeanLoss

HIDDEN = -1e9  # the logit of documents that are left out


@keras.saving.register_keras_serializable(package="keras_attention")
class InfoNCE(GlobalMeanLoss):
    """Symmetric contrastive loss: pairs match, and the other pairs of the batch are negatives.

    It is the mean of two cross-entropies (van den Oord et al., 2018; Radford et al., 2021, figure
    3): of the right document among all documents, given the query, and of the right query among all
    queries, given the matching document. Hard negatives, documents that look as if they matched,
    only join the documents to choose from. Equal texts have equal numbers in `y_true`, and a
    document that matches a query is not a negative of this query.

    On several devices, the negatives are the pairs of the same device.

    Call arguments:
        y_true: int (B, 1 + K), the numbers of the texts in each row: the query, the document that
            matches it, then K - 1 hard negatives. A number below 0 stands for a missing text. Rows
            without a query or a matching document do not count in the mean.
        y_pred: logits (B, K · B) of `ka.blocks.ContrastiveLogits`. The first B documents are the
            matching documents of all rows, the next B their first hard negatives, and so on. If
            `ContrastiveLogits` compares P lengths of vectors (its `dimensions`), the logits are (B,
            P, K · B), and the loss is the mean over the lengths.
        sample_weight: (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    logits = np.log([[3.0, 1.0], [1.0, 3.0]])
    loss = ka.training.InfoNCE()
    assert abs(float(loss(np.array([[0, 1], [2, 3]]), logits)) + np.log(3 / 4)) < 1e-6
    assert float(loss(np.array([[0, 1], [2, 1]]), logits)) == 0.0  # both match the same document
    ```
    """

    default_name = "info_nce"

    def call(self, y_true, y_pred):
        logits, own, visible, counts = _read_batch(self, y_true, y_pred)
        right = ops.sum(ops.where(own, logits, 0.0), axis=-1)  # (B, P)
        documents = ops.logsumexp(ops.where(visible, logits, HIDDEN), axis=-1)
        matches = ops.shape(logits)[0]
        logits, visible = logits[..., :matches], visible[..., :matches]
        queries = ops.logsumexp(ops.where(visible, logits, HIDDEN), axis=0)
        losses = 0.5 * (documents + ops.transpose(queries)) - right
        losses = ops.where(counts, losses, 0.0)
        counts = ops.logical_and(counts, ops.ones_like(losses, dtype="bool"))
        if len(y_pred.shape) == 2:
            losses, counts = losses[:, 0], counts[:, 0]
        keras_internals.set_mask(losses, counts)
        return losses


@keras.saving.register_keras_serializable(package="keras_attention")
class ContrastiveAccuracy(MaskedMean):
    """Fraction of queries whose matching document has the largest logit in the batch.

    `update_state` has the same arguments as a call of `InfoNCE`. With several lengths of vectors,
    the metric is the mean over the lengths. It depends on the batch size: with larger batches it is
    lower.

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.ContrastiveAccuracy()
    accuracy.update_state(np.array([[0, 1], [2, 3]]), np.array([[2.0, 1.0], [2.0, 1.0]]))
    assert float(accuracy.result()) == 0.5
    ```
    """

    default_name, own_arguments = "contrastive_accuracy", ()

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_pred = ops.cast(y_pred, "float32")
        logits, own, visible, counts = _read_batch(self, y_true, y_pred)
        best = ops.argmax(ops.where(visible, logits, HIDDEN), axis=-1)  # (B, P)
        rows = ops.expand_dims(ops.arange(ops.shape(logits)[0], dtype="int32"), 1)
        right = ops.equal(ops.cast(best, "int32"), rows)
        weights = ops.cast(counts, "float32") * ops.ones_like(right, dtype="float32")
        if sample_weight is not None:
            shape = shape_of(y_pred)[:1]
            weights *= match_weights(type(self).__name__, sample_weight, (*shape, 1), "float32")
        self.add_positions(right, weights)


def _read_batch(owner, y_true, y_pred):
    """Compare the texts of a batch. `owner` is the loss or metric with these arguments.

    Returns:
        A tuple: the logits (B, P, C), and three bool tensors: whether document c is the one that
        row b names (B, 1, C), whether it is this document or a negative (B, 1, C), and whether the
        row counts (B, 1).
    """
    numbers = match_numbers(type(owner).__name__, y_true, y_pred)
    queries, documents = (ops.cast(each, "int32") for each in numbers)  # (B,), (C,)
    rows = ops.shape(queries)[0]
    matches = documents[:rows]
    counts = ops.logical_and(queries >= 0, matches >= 0)  # (B,)
    own = ops.equal(
        ops.expand_dims(ops.arange(rows, dtype="int32"), 1),
        ops.arange(ops.shape(documents)[0], dtype="int32"),
    )
    # Document c matches query b if a row with the same query names the same text.
    same_query = _compare(queries, queries)
    same_document = ops.logical_and(_compare(matches, documents), ops.expand_dims(counts, 1))
    related = ops.matmul(ops.cast(same_query, "float32"), ops.cast(same_document, "float32")) > 0
    named = ops.logical_and(ops.expand_dims(counts, 1), documents >= 0)
    ours = ops.concatenate([counts, ops.ones_like(documents[rows:], dtype="bool")])
    named = ops.logical_and(named, ours)
    visible = ops.logical_and(named, ops.logical_or(own, ops.logical_not(related)))
    logits = y_pred if len(y_pred.shape) == 3 else ops.expand_dims(y_pred, 1)
    own, visible, named = (ops.expand_dims(x, 1) for x in (own, visible, named))
    # Gradients would be NaN if logits of ignored rows were not finite.
    return ops.where(named, logits, 0.0), own, visible, ops.expand_dims(counts, 1)


def _compare(numbers, others):
    return ops.equal(ops.expand_dims(numbers, 1), ops.expand_dims(others, 0))
