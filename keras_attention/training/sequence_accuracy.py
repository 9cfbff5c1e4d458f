"""The share of rows in which every position is labelled right."""

import keras
from keras import ops

from keras_attention.training.masked_mean import MaskedMean


@keras.saving.register_keras_serializable(package="keras_attention")
class MaskedSequenceAccuracy(MaskedMean):
    """How often the largest logit is the label's at every position of a row.

    For a model that writes, given the target so far, it is the share of rows that greedy decoding
    writes exactly: it can only leave the target where a largest logit is another's.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding. A row in
            which all are left out does not count.
        name: str.
        dtype: of the result.

    Call arguments of `update_state`:
        y_true: int labels (B, T).
        y_pred: logits or probabilities (B, T, L).
        sample_weight: (B,) or (B, T). Positions of weight 0 are left out; a row has the largest
            weight of its positions.

    A padding mask that the model left on `y_pred` takes positions out as well.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.MaskedSequenceAccuracy()
    logits = np.eye(4)[[[1, 2, 0], [3, 0, 0]]]
    accuracy.update_state(np.array([[1, 2, -1], [3, 1, 0]]), logits)
    assert float(accuracy.result()) == 0.5
    ```
    """

    default_name = "masked_sequence_accuracy"

    def update_state(self, y_true, y_pred, sample_weight=None):
        weights = self.weights_of(y_true, y_pred, sample_weight)
        labels = ops.cast(y_true, "int32")
        right = ops.equal(labels, ops.cast(ops.argmax(y_pred, axis=-1), "int32"))
        right = ops.all(ops.logical_or(right, ops.equal(weights, 0)), axis=-1)  # (B,)
        super().update_state(right, ops.max(weights, axis=-1))
