"""Loss and metrics for speech models with a decoder, whose encoder is also trained with CTC."""

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
    """Loss of `ka.models.speech_to_text(..., ctc_head=True)`: CTC plus cross-entropy.

    The loss is `ctc_weight · CTC + (1 - ctc_weight) · cross-entropy` (Watanabe et al., 2017,
    equation 13), where both terms are sums over the labels of an utterance. CTC trains the encoder
    and finds within one or two epochs where in the sound each label is. With only cross-entropy
    this takes far longer. Compile the loss with `ka.training.JointModel`, because the model has two
    outputs.

    Args:
        ctc_weight: float, from 0 to 1.
        label_smoothing: float, the probability that the targets of the cross-entropy spread evenly
            over all classes.
        reduction: how Keras combines the losses of a batch, by default the mean over utterances.

    Call arguments:
        y_true: dict of int labels, as `ka.data.batches` returns them: `"logits"` (B, U) for the
            decoder, padded with -1, and `"ctc_logits"` (B, L) for the encoder, padded with 0.
        y_pred: dict of logits over V ids: `"logits"` (B, U, V) of the decoder, and `"ctc_logits"`
            (B, T, V) of the encoder, whose Keras mask, bool (B, T), is True for the frames of the
            utterance.
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
        """Compute the loss, with the CTC loss and the mask of the logits moved into `y_true`.

        Otherwise Keras would multiply the losses (B,) by the mask (B, U).
        """
        frame_losses = self._ctc(y_true["ctc_logits"], y_pred["ctc_logits"])
        logits = ops.convert_to_tensor(y_pred["logits"])
        labels = match_labels(type(self).__name__, y_true["logits"], logits)
        labels = ops.cast(labels, "int32")
        if (mask := keras_internals.get_mask(logits)) is not None:
            labels = ops.where(mask, labels, -1)
            logits = ops.where(ops.expand_dims(mask, axis=2), logits, ops.cast(0, logits.dtype))
        return super().__call__(
            {"labels": labels, "frame_losses": frame_losses}, logits, sample_weight
        )

    def get_loss_shape(self, y_pred):
        return shape_of(y_pred)[:1]

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true["labels"], "int32")
        counts = ops.not_equal(labels, -1)
        labels = ops.where(counts, labels, 0)
        losses = compute_crossentropy(labels, y_pred, self.label_smoothing)
        token_losses = ops.sum(ops.where(counts, losses, 0.0), axis=1)
        return self.ctc_weight * y_true["frame_losses"] + (1 - self.ctc_weight) * token_losses


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderAccuracy(MaskedSparseCategoricalAccuracy):
    """Accuracy of the decoder of a model with `"logits"` and `"ctc_logits"`, padding ignored.

    Use it with a `JointModel`, whose loss and metrics receive dicts of all labels and outputs. The
    metric computes `MaskedSparseCategoricalAccuracy` from the token ids `y_true["logits"]` and the
    logits `y_pred["logits"]`.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true["logits"], y_pred["logits"], sample_weight)


@keras.saving.register_keras_serializable(package="keras_attention")
class DecoderSequenceAccuracy(MaskedSequenceAccuracy):
    """Fraction of rows in which the decoder predicts every token right, padding ignored.

    Use it with a `JointModel`, whose loss and metrics receive dicts of all labels and outputs. The
    metric computes `MaskedSequenceAccuracy` from the token ids `y_true["logits"]` and the logits
    `y_pred["logits"]`.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true["logits"], y_pred["logits"], sample_weight)
