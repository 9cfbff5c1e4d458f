"""Loss and accuracy for connectionist temporal classification (CTC), to train on speech."""

import keras
from keras import ops

from keras_attention.blocks.lengths import mask_lengths
from keras_attention.blocks.outputs import GreedyCTCDecoder
from keras_attention.core import checks, keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_rows, match_weights, shape_of
from keras_attention.training.replicas import GlobalMeanLoss, count_replicas


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedCTC(GlobalMeanLoss):
    """The CTC loss, which trains a model on labels without timestamps, such as a transcript.

    The loss is the negative log of the total probability of all alignments of labels with frames
    (Graves et al., 2006, section 4). It is `keras.losses.CTC`, but ignores padding: labels equal to
    `blank_id`, and frames that are masked in the logits. On TensorFlow it calls the op for sparse
    labels, which is more than twice as fast.

    Args:
        blank_id: int, the id of the blank class, which is also the padding of the labels.
        reduction: how Keras combines the losses of a batch, by default the mean over utterances.
        dtype: dtype of the loss. None means float32, even under mixed precision.

    Call arguments:
        y_true: int labels (B, U), at most U per utterance, padded with `blank_id` at the end.
        y_pred: logits (B, T, V) of V labels with the blank. Their implicit Keras mask, bool (B, T),
            is True for the frames of the utterance, and padding comes after them. Without a mask
            all T frames count.
        sample_weight: (B,).

    An utterance needs at least as many frames as labels, plus one for each pair of equal adjacent
    labels. If it has fewer, no alignment exists, and its loss and its gradient are 0.

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
        """Compute the loss, with the mask of the frames moved from `y_pred` into `y_true`.

        Otherwise Keras would multiply the losses (B,) by the mask (B, T).
        """
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
    """Fraction of utterances for which greedy decoding gives exactly the labels.

    Args:
        blank_id: int, the id of the blank class, which is also the padding of the labels.

    Call arguments of `update_state`:
        y_true: int labels (B, U), at most U per utterance, padded with `blank_id` at the end.
        y_pred: logits (B, T, V) of V labels with the blank, with an optional Keras mask (B, T) of
            the frames.
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
    """Compute the CTC loss of each utterance, float (B,), or 0 if it has too few frames.

    Args:
        labels: int32 (B, U), at most U per utterance, padded with `blank_id`.
        logits: float (B, T, V), for T frames and V labels with the blank.
        lengths: int32 (B,), the number of frames of each utterance.
        blank_id: int, the id of the blank class.
    """
    rows = ops.shape(labels)[0]
    if count_replicas() > 1:  # TensorFlow's op fails on an empty batch, so add a row
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
    # The ops need at least one label per row. Empty rows get one, and their result is not used.
    anything = int(blank_id == 0)
    labels = ops.where(ops.expand_dims(spoken, axis=1), labels, blank_id)
    first = ops.where(spoken, labels[:, 0], anything)
    labels = ops.concatenate([ops.expand_dims(first, axis=1), labels[:, 1:]], axis=1)
    lengths_or_one = ops.where(spoken, lengths, 1)
    if _takes_sparse_labels():
        losses = _compute_with_sparse_labels(labels, logits, lengths_or_one, blank_id)
    else:
        label_lengths = ops.sum(ops.cast(ops.not_equal(labels, blank_id), "int32"), axis=1)
        losses = ops.ctc_loss(labels, logits, label_lengths, lengths_or_one, mask_index=blank_id)
    silent = ops.logical_and(possible, count == 0)
    blank = ops.log_softmax(logits, axis=-1)[:, :, blank_id]
    frames = mask_lengths(lengths, ops.shape(logits)[1])
    losses = ops.where(silent, -ops.sum(ops.where(frames, blank, 0.0), axis=1), losses)
    return ops.where(possible, losses, ops.cast(0, losses.dtype))[:rows]


def _takes_sparse_labels():
    if keras.backend.backend() != "tensorflow":
        return False
    from keras_attention.attention.kernels.sliced_tensorflow import compiles_with_xla

    return not compiles_with_xla()  # XLA does not support the op


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
