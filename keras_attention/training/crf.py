"""`CRFLoss`: trains a model whose last layer is a conditional random field."""

import keras
from keras import ops

from keras_attention.blocks.conditional_random_field import score_labels
from keras_attention.core import keras_internals
from keras_attention.training.label_shapes import match_labels, shape_of
from keras_attention.training.losses import MaskedSparseCategoricalCrossentropy


@keras.saving.register_keras_serializable(package="keras_attention")
class CRFLoss(MaskedSparseCategoricalCrossentropy):
    """Negative log-likelihood of label sequences, for `ka.blocks.ConditionalRandomField`.

    The loss of a token is -log p(label | labels before it, text) under the conditional random field
    (Lafferty et al., 2001). The sum over a sentence is the negative log-likelihood of its label
    sequence. By default the result is the mean over tokens, as for
    `MaskedSparseCategoricalCrossentropy`, whose arguments this class has. If all transitions are 0,
    both losses are equal. Avoid `label_smoothing` if a tag scheme forbids transitions, because it
    expects some probability of every label.

    Call arguments:
        y_true: int labels (B, T). Positions with the label `ignore_class` are left out of the
            sequence, so the labels before and after them are neighbors.
        y_pred: the output (B, T, L) of the layer, for L labels, in the same training step. The
            layer attaches the scores that the loss needs, as `keras.activations.softmax` attaches
            logits.
        sample_weight: (B,) or (B, T).

    ```python
    import numpy as np
    import keras_attention as ka

    crf = ka.blocks.ConditionalRandomField(["O", "B-PER", "I-PER"])
    loss = ka.training.CRFLoss()(np.array([[1, 2, -1]]), crf(np.zeros((1, 3, 3))))
    assert abs(float(loss) - np.log(5) / 2) < 1e-6  # 5 sequences of two tags, equally likely
    ```
    """

    default_name = "crf_loss"

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Compute the loss as the cross-entropy of logits that depend on the label before."""
        potentials = keras_internals.read_attached(y_pred, "potentials")
        if potentials is None:
            if keras_internals.infers_shapes():
                return super().__call__(y_true, y_pred, sample_weight)
            raise ValueError(
                f"CRFLoss got predictions of shape {shape_of(y_pred)} that are not the output of a "
                "ka.blocks.ConditionalRandomField: expected this layer to be the last of the "
                'model. Add it, for example with sequence_labeler(..., head="crf"), or use '
                "MaskedSparseCategoricalCrossentropy."
            )
        labels = ops.cast(match_labels(type(self).__name__, y_true, y_pred), "int32")
        counts = ops.not_equal(labels, self.ignore_class)
        if potentials.mask is not None:
            counts = ops.logical_and(counts, potentials.mask)
        labels = ops.where(counts, labels, self.ignore_class)
        logits, _ = score_labels(potentials._replace(mask=counts), labels)
        return super().__call__(labels, logits, sample_weight)
