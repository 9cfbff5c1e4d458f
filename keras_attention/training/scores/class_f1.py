"""`ClassF1`: a metric for the mean F1 over classes, which also has the confusion matrix."""

import keras
from keras import ops

from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.training.metrics import read_positions


@keras.saving.register_keras_serializable(package="keras_attention")
class ClassF1(OwnArguments, keras.metrics.Metric):
    """Mean F1 over classes (macro F1), for examples or positions with one class each.

    F1 is 2 · precision · recall / (precision + recall). A model that always predicts the most
    frequent class has a high accuracy but a low macro F1, because each class counts equally. A
    class that neither occurs nor is predicted does not count, as in scikit-learn's `f1_score`.

    Args:
        num_classes: int, the number of classes L.
        ignore_class: int, the label of positions to ignore, such as padding.

    Attributes:
        counts: (L, L), the confusion matrix: row i, column j counts the positions of class i that
            were predicted as class j.

    Call arguments of `update_state`:
        y_true: int labels from 0 to L - 1, of shape (B,), (B, T) or any other. A label outside this
            range that is not `ignore_class` makes the result NaN.
        y_pred: logits or probabilities of the shape of `y_true` plus a last axis of L classes.
        sample_weight: weights of the shape of `y_true` or of its first axes.

    Raises:
        ValueError: the last axis of `y_pred` is not of size L.

    ```python
    import numpy as np
    import keras_attention as ka

    f1 = ka.training.ClassF1(num_classes=2)
    f1.update_state(np.array([0, 0, 0, 1]), np.array([[2.0, 1.0]] * 4))  # always class 0
    assert f1.counts.numpy().tolist() == [[3, 0], [1, 0]]
    assert round(float(f1.result()), 3) == 0.429  # the mean of 0.857 and 0
    ```
    """

    own_arguments = ("num_classes", "ignore_class")

    def __init__(self, num_classes, ignore_class=-1, name="macro_f1", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = check_whole_number("ClassF1", "num_classes", num_classes)
        self.ignore_class = ignore_class
        self.counts = self.add_variable((num_classes, num_classes), "zeros", name="counts")

    def update_state(self, y_true, y_pred, sample_weight=None):
        size, y_pred = self.num_classes, ops.convert_to_tensor(y_pred)
        if y_pred.shape[-1] != size:
            raise ValueError(
                f"y_pred of shape {tuple(y_pred.shape)} has {y_pred.shape[-1]} classes, but "
                f"ClassF1 has num_classes={size}. Set num_classes={y_pred.shape[-1]}."
            )
        labels, weights = read_positions(self, y_true, y_pred, sample_weight)
        predicted = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        valid = ops.logical_and(labels >= 0, labels < size)
        cells = size * ops.where(valid, labels, 0) + predicted  # weight 0: any cell
        weights = ops.where(ops.logical_or(valid, weights == 0), weights, float("nan"))
        counts = ops.segment_sum(
            ops.reshape(ops.cast(weights, self.dtype), (-1,)),
            ops.reshape(cells, (-1,)),
            num_segments=size * size,
        )
        self.counts.assign_add(ops.reshape(counts, (size, size)))

    def result(self):
        right = ops.diagonal(self.counts)
        totals = ops.sum(self.counts, axis=0) + ops.sum(self.counts, axis=1)
        present = ops.cast(ops.not_equal(totals, 0), self.dtype)
        return ops.divide_no_nan(ops.sum(ops.divide_no_nan(2 * right, totals)), ops.sum(present))
