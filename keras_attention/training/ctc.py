"""Connectionist temporal classification: loss and accuracy of labels without times."""

import keras
from keras import ops

from keras_attention.blocks.ctc_decoder import GreedyCTCDecoder
from keras_attention.blocks.length_mask import mask_lengths
from keras_attention.core import checks, keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_rows, match_weights, shape_of
from keras_attention.training.replicas import GlobalMeanLoss, count_replicas


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedCTC(GlobalMeanLoss):
    """-log of the probability of all alignments of the labels (Graves et al., 2006, section 4).

    It is `keras.losses.CTC` without padding: labels equal to `blank_id`, and frames that the mask
    of the logits leaves out. On TensorFlow it calls the op for sparse labels, which is more than
    twice as fast.

    Args:
        blank_id: int, the class between labels, and the padding of labels.
        reduction: as in every Keras loss. The mean is over utterances.
        dtype: None for float32, also under mixed precision.

    Call arguments:
        y_true: int labels (B, U), padded with `blank_id` at the end.
        y_pred: logits (B, T, V). Their implicit mask, bool (B, T), is True for the frames of an
            utterance, which come first. Without a mask all T frames count.
        sample_weight: (B,).

    An utterance has no alignment if it has fewer frames than labels, plus one between two equal
    labels. Its loss and its gradient are 0.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    loss = ka.training.MaskedCTC()
    logits = np.zeros((1, 2, 3), "float32")  # 9 alignments, equally likely
    once = loss(np.array([[2, 0]]), logits)  # 2 2, 2 blank, blank 2
    assert abs(float(once) - np.log(9 / 3)) < 1e-5
    ```
    """

    default_name, own_arguments = "masked_ctc", ("blank_id",)

    def __init__(self, blank_id=0, reduction="sum_over_batch_size", name=None, dtype=None):
        super().__init__(reduction, name, dtype)
        self.blank_id = checks.check_whole_number("MaskedCTC", "blank_id", blank_id, least=0)

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Pass the mask of frames with the labels: Keras would weight the losses (B,) with it."""
        y_true = {"labels": match_rows(type(self).__name__, y_true, y_pred)}
        y_pred = ops.convert_to_tensor(y_pred)
        mask = keras_internals.get_mask(y_pred)
        if mask is not None:
            y_true["mask"] = mask
            y_pred = ops.where(ops.expand_dims(mask, axis=2), y_pred, ops.cast(0, y_pred.dtype))
        return super().__call__(y_true, y_pred, sample_weight)

    def get_loss_shape(self, y_pred):
        return shape_of(y_pred)[:1]

    def call(self, y_true, y_pred):
        labels, frames = ops.cast(y_true["labels"], "int32"), ops.shape(y_pred)[1]
        if "mask" in y_true:
            lengths = ops.sum(ops.cast(y_true["mask"], "int32"), axis=1)
        else:
            lengths = ops.full((ops.shape(y_pred)[0],), frames, dtype="int32")
        return compute_ctc_loss(labels, y_pred, lengths, self.blank_id)


@keras.saving.register_keras_serializable(package="keras_attention")
class CTCTranscriptAccuracy(OwnArguments, keras.metrics.Mean):
    """Share of utterances whose labels greedy decoding finds exactly.

    Args:
        blank_id: int, as in `MaskedCTC`.

    Call arguments of `update_state`:
        y_true: int labels (B, U), padded with `blank_id` at the end.
        y_pred: logits (B, T, V), with the mask of their frames.
        sample_weight: (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.CTCTranscriptAccuracy()
    logits = np.eye(3)[[[0, 1, 1, 2], [1, 0, 0, 2]]]
    accuracy.update_state(np.array([[1, 2], [2, 1]]), logits)
    assert float(accuracy.result()) == 0.5
    ```
    """

    own_arguments = ("blank_id",)

    def __init__(self, blank_id=0, name="transcript_accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.blank_id = blank_id
        self._decoder = GreedyCTCDecoder(blank_id)

    def update_state(self, y_true, y_pred, sample_weight=None):
        name = type(self).__name__
        predicted = self._decoder(y_pred, mask=keras_internals.get_mask(y_pred))
        labels = ops.cast(match_rows(name, y_true, y_pred), "int32")
        if sample_weight is not None:
            sample_weight = match_weights(name, sample_weight, labels.shape[:1], self.dtype)
        length = ops.maximum(ops.shape(labels)[1], ops.shape(predicted)[1])
        predicted, labels = (
            ops.pad(x, ((0, 0), (0, length - ops.shape(x)[1])), constant_values=self.blank_id)
            for x in (predicted, labels)
        )
        super().update_state(ops.all(ops.equal(predicted, labels), axis=1), sample_weight)


def compute_ctc_loss(labels, logits, lengths, blank_id=0):
    """Compute the loss of each utterance, float (B,). It is 0 with too few frames for the labels.

    Args:
        labels: int32 (B, U), padded with `blank_id` at the end.
        logits: float (B, T, V).
        lengths: int32 (B,), the number of frames of each utterance.
    """
    rows = ops.shape(labels)[0]
    if count_replicas() > 1:  # TensorFlow's op fails where a replica has no row: it gets one
        spare = ops.cast(ops.equal(rows, 0), "int32")
        labels = ops.pad(labels, ((0, spare), (0, 0)), constant_values=blank_id)
        logits = ops.pad(logits, ((0, spare), (0, 0), (0, 0)))
        lengths = ops.pad(lengths, ((0, spare),))
    is_label = ops.not_equal(labels, blank_id)
    repeats = ops.logical_and(ops.equal(labels[:, 1:], labels[:, :-1]), is_label[:, 1:])
    count = ops.sum(ops.cast(is_label, "int32"), axis=1)
    needed = count + ops.sum(ops.cast(repeats, "int32"), axis=1)
    possible = ops.logical_and(needed <= lengths, lengths > 0)
    spoken = ops.logical_and(possible, count > 0)
    # The ops need a label in every row. Rows without one get one, on one frame, and are left out.
    anything = int(blank_id == 0)
    labels = ops.where(ops.expand_dims(spoken, axis=1), labels, blank_id)
    first = ops.where(spoken, labels[:, 0], anything)
    labels = ops.concatenate([ops.expand_dims(first, axis=1), labels[:, 1:]], axis=1)
    compute = _compute_with_dense_labels
    if keras.backend.backend() == "tensorflow":
        from keras_attention.attention.kernels.sliced_tensorflow import compiles_with_xla

        if not compiles_with_xla():  # XLA has no kernel of the op of sparse labels
            compute = _compute_with_sparse_labels
    losses = compute(labels, logits, ops.where(spoken, lengths, 1), blank_id)
    silent = ops.logical_and(possible, count == 0)
    blank = ops.log_softmax(logits, axis=-1)[:, :, blank_id]
    frames = mask_lengths(lengths, ops.shape(logits)[1])
    losses = ops.where(silent, -ops.sum(ops.where(frames, blank, 0.0), axis=1), losses)
    return ops.where(possible, losses, ops.cast(0, losses.dtype))[:rows]


def _compute_with_dense_labels(labels, logits, lengths, blank_id):
    count = ops.sum(ops.cast(ops.not_equal(labels, blank_id), "int32"), axis=1)
    return ops.ctc_loss(labels, logits, count, lengths, mask_index=blank_id)


def _compute_with_sparse_labels(labels, logits, lengths, blank_id):
    import tensorflow as tf

    indices = tf.where(labels != blank_id)
    sparse = tf.SparseTensor(
        indices, tf.gather_nd(labels, indices), tf.cast(tf.shape(labels), "int64")
    )
    return tf.nn.ctc_loss(
        sparse,
        tf.cast(logits, "float32"),
        label_length=None,
        logit_length=lengths,
        logits_time_major=False,
        blank_index=blank_id,
    )
