"""Loss and metrics of speech encoder-decoders that also learn alignments by CTC."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.training.ctc import MaskedCTC
from keras_attention.training.label_shapes import match_labels, shape_of
from keras_attention.training.losses import compute_crossentropy
from keras_attention.training.metrics import MaskedSequenceAccuracy, MaskedSparseCategoricalAccuracy
from keras_attention.training.replicas import GlobalMeanLoss


@keras.saving.register_keras_serializable(package="keras_attention")
class CTCAttention(GlobalMeanLoss):
    """CTC loss of the encoder plus cross-entropy of the decoder (Watanabe et al., 2017, eq. 13).

    `ctc_weight · CTC + (1 - ctc_weight) · cross-entropy`, both summed over the labels of an
    utterance. CTC finds alignments within an epoch or two, attention without it takes far longer.
    Compile it with `ka.training.JointModel`: `ka.models.speech_to_text(..., ctc_head=True)` has two
    outputs.

    Args:
        ctc_weight: float, from 0 to 1.
        label_smoothing: float, for the cross-entropy, as in `MaskedSparseCategoricalCrossentropy`.
        reduction: as in every Keras loss. The mean is over utterances.

    Call arguments:
        y_true: dict of int labels: `"logits"` (B, U), padded with -1, and `"ctc_logits"` (B, L),
            padded with 0, as `ka.data.batches` gives them.
        y_pred: dict of `"logits"` (B, U, V) and `"ctc_logits"` (B, T, V), with a mask of the
            frames, as in `MaskedCTC`.
        sample_weight: (B,).

    ```python
    import numpy as np
    import keras_attention as ka

    loss = ka.training.CTCAttention(ctc_weight=0.25)
    truth = {"logits": np.array([[2, 1, -1]]), "ctc_logits": np.array([[2, 0]])}
    zeros = {"logits": np.zeros((1, 3, 4)), "ctc_logits": np.zeros((1, 2, 3), "float32")}
    expected = 0.25 * np.log(9 / 3) + 0.75 * 2 * np.log(4)
    assert abs(float(loss(truth, zeros)) - expected) < 1e-5
    ```
    """

    default_name, own_arguments = "ctc_attention", ("ctc_weight", "label_smoothing")

    def __init__(
        self,
        ctc_weight=0.3,
        label_smoothing=0.0,
        reduction="sum_over_batch_size",
        name=None,
        dtype=None,
    ):
        super().__init__(reduction, name, dtype)
        self.ctc_weight, self.label_smoothing = ctc_weight, label_smoothing
        checks.check_number(self, "ctc_weight", least=0, most=1)
        checks.check_number(self, "label_smoothing", least=0, most=1)
        self._ctc = MaskedCTC(reduction=None)

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Pass the CTC loss and the mask with the labels: Keras would weight losses with it."""
        of_frames = self._ctc(y_true["ctc_logits"], y_pred["ctc_logits"])
        logits = ops.convert_to_tensor(y_pred["logits"])
        labels = match_labels(type(self).__name__, y_true["logits"], logits)
        labels = ops.cast(labels, "int32")
        if (mask := keras_internals.get_mask(logits)) is not None:
            labels = ops.where(mask, labels, -1)
            logits = ops.where(ops.expand_dims(mask, axis=2), logits, ops.cast(0, logits.dtype))
        return super().__call__({"labels": labels, "of_frames": of_frames}, logits, sample_weight)

    def get_loss_shape(self, y_pred):
        return shape_of(y_pred)[:1]

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true["labels"], "int32")
        counts = ops.not_equal(labels, -1)
        labels = ops.where(counts, labels, 0)
        losses = compute_crossentropy(labels, y_pred, self.label_smoothing)
        of_tokens = ops.sum(ops.where(counts, losses, 0.0), axis=1)
        return self.ctc_weight * y_true["of_frames"] + (1 - self.ctc_weight) * of_tokens


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderAccuracy(MaskedSparseCategoricalAccuracy):
    """`MaskedSparseCategoricalAccuracy` of the decoder's logits, for `JointModel`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true["logits"], y_pred["logits"], sample_weight)


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderSequenceAccuracy(MaskedSequenceAccuracy):
    """`MaskedSequenceAccuracy` of the decoder's logits, for `JointModel`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true["logits"], y_pred["logits"], sample_weight)
