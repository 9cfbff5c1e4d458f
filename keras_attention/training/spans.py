"""BIO tags read as spans, for whole batches at once.

A batch of tags is a pair of int tensors (B, T): `begins`, 1 for a `B-` tag, and `types`, 0 for `O`
and k for the k-th entity type. Everything else follows from comparing neighbours.
"""

import numpy as np
from keras import ops


class Scheme:
    """What each label of a BIO tag set means.

    Args:
        labels: list of str; `O`, `B-X`, `I-X`, or plain `B` and `I` where there is one type.
    """

    def __init__(self, labels):
        labels = list(labels)
        if wrong := [tag for tag in labels if not _is_bio(tag)]:
            raise ValueError(
                f"labels has {', '.join(map(repr, wrong))}, which is no BIO tag: expected 'O', "
                "'B-<type>' or 'I-<type>'."
            )
        kinds = [None if tag == "O" else tag[2:] for tag in labels]
        self.types = tuple(sorted({kind for kind in kinds if kind is not None}))
        if not self.types:
            raise ValueError(f"labels={labels} names no entity: expected 'B-<type>' tags.")
        self._begins = np.array([tag.startswith("B") for tag in labels], "int32")
        self._types = np.array([self._number(kind) for kind in kinds], "int32")

    def _number(self, kind):
        return 0 if kind is None else 1 + self.types.index(kind)

    def read(self, labels):
        """Label ids (B, T) -> `begins`, `types` (B, T). An ignored id, below 0, is read as `O`."""
        known = ops.cast(labels >= 0, "int32")
        labels = ops.maximum(labels, 0)
        begins = ops.take(ops.convert_to_tensor(self._begins), labels, axis=0)
        types = ops.take(ops.convert_to_tensor(self._types), labels, axis=0)
        return begins * known, types * known


def _is_bio(tag):
    return tag in ("O", "B", "I") or tag[:2] in ("B-", "I-")


def left_align(true, predicted, weights):
    """Moves the positions of weight 0 to the end of each row and makes them -1 in both tags.

    What is left out then lies after the sentence, never inside it. All three are (B, T).
    """
    kept = ops.not_equal(weights, 0)
    length = ops.shape(true)[1]
    position = ops.broadcast_to(ops.expand_dims(ops.arange(length), 0), ops.shape(true))
    # Distinct keys, so that no backend needs a stable sort.
    order = ops.argsort(position + length * ops.cast(ops.logical_not(kept), position.dtype), axis=1)
    true, predicted = ops.where(kept, true, -1), ops.where(kept, predicted, -1)
    return tuple(ops.take_along_axis(x, order, axis=1) for x in (true, predicted, weights))


def starts_and_ends(begins, types):
    """Where entities have their first and their last token: two bool tensors (B, T)."""
    inside = types > 0
    before, after = _shift(types, 1), _shift(types, -1)
    # An `I-` continues what is before it only if the types agree: `O` has type 0.
    starts = ops.logical_and(inside, ops.logical_or(begins > 0, ops.not_equal(before, types)))
    next_begins = _shift(begins, -1) > 0
    ends = ops.logical_and(inside, ops.logical_or(next_begins, ops.not_equal(after, types)))
    return starts, ends


def _shift(x, by):
    """Moves columns of (B, T) by one to the right (1) or left (-1); 0 comes in."""
    edge = ops.zeros_like(x[:, :1])
    parts = [edge, x[:, :-1]] if by == 1 else [x[:, 1:], edge]
    return ops.concatenate(parts, axis=1)


def agreeing(true, predicted):
    """Bool (B, T): at the tokens of each true entity, whether the prediction has the very same one.

    It has if types, starts and ends agree at every token of the entity: then it begins and ends
    there and nothing begins or ends in between.
    """
    starts, ends = starts_and_ends(*true)
    predicted_starts, predicted_ends = starts_and_ends(*predicted)
    same = ops.logical_and(ops.equal(starts, predicted_starts), ops.equal(ends, predicted_ends))
    same = ops.logical_and(same, ops.equal(true[1], predicted[1]))
    wrong = ops.logical_and(true[1] > 0, ops.logical_not(same))
    # Entities are numbered through the batch, from 1; errors are summed for each.
    flat = (ops.shape(starts)[0] * ops.shape(starts)[1],)
    number = ops.cumsum(ops.cast(ops.reshape(starts, flat), "int32"))
    errors = ops.segment_sum(
        ops.cast(ops.reshape(wrong, flat), "int32"), number, num_segments=flat[0] + 1
    )
    return ops.reshape(ops.equal(ops.take(errors, number, axis=0), 0), ops.shape(starts))
