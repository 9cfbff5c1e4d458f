"""Perplexity, padding left out."""

import keras
from keras import ops

from keras_attention.training.crossentropy import crossentropy
from keras_attention.training.masked_mean import MaskedMean


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedPerplexity(MaskedMean):
    """Among how many tokens a model is as undecided as among equals: e to the mean loss of a token.

    Every token of an epoch weighs the same, and labels are not smoothed, whatever the loss does.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any shape.
        y_pred: logits, the shape of `y_true` and one axis of classes.
        sample_weight: of the shape of `y_true`, or of its leading axes.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    perplexity = ka.training.MaskedPerplexity()
    perplexity.update_state(np.array([[3, 1, -1]]), np.zeros((1, 3, 5)))
    assert abs(float(perplexity.result()) - 5.0) < 1e-5  # of five tokens each is as likely
    ```
    """

    default_name = "masked_perplexity"

    def update_state(self, y_true, y_pred, sample_weight=None):
        weights = self.weights_of(y_true, y_pred, sample_weight)
        counts = ops.not_equal(weights, 0)
        labels = ops.where(counts, ops.cast(y_true, "int32"), 0)
        logits = ops.cast(ops.convert_to_tensor(y_pred), self.dtype)
        losses = crossentropy(labels, logits)
        # What is left out may be no number, and 0 times that is none either.
        losses = ops.where(counts, losses, 0.0)
        super().update_state(ops.reshape(losses, (-1,)), ops.reshape(weights, (-1,)))

    def result(self):
        return ops.exp(super().result())
