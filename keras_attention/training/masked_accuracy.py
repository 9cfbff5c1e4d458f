"""The share of positions labelled right, padding left out."""

import keras
from keras import ops

from keras_attention.training.masked_mean import MaskedMean


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSparseCategoricalAccuracy(MaskedMean):
    """How often the largest logit is the label's, over positions not labelled `ignore_class`.

    Every position weighs the same. Keras's own mean weighs every *row* the same within a batch
    and so counts the tokens of batches padded to different lengths differently.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T), or of any shape.
        y_pred: logits or probabilities, the shape of `y_true` and one axis of classes.
        sample_weight: of the shape of `y_true`, or of its leading axes.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.MaskedSparseCategoricalAccuracy()
    accuracy.update_state(np.array([[0, 1, -1]]), np.array([[[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]]))
    assert float(accuracy.result()) == 0.5
    ```
    """

    default_name = "masked_sparse_categorical_accuracy"

    def update_state(self, y_true, y_pred, sample_weight=None):
        weights = self.weights_of(y_true, y_pred, sample_weight)
        labels = ops.cast(y_true, "int32")
        right = ops.equal(labels, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))
        super().update_state(ops.reshape(right, (-1,)), ops.reshape(weights, (-1,)))
