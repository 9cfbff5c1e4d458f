"""Loss and metric for models that predict the start and the end of an answer in a text."""

import keras
from keras import ops

from keras_attention.core.checks import check_whole_number
from keras_attention.training.label_shapes import shape_of
from keras_attention.training.losses import MaskedSparseCategoricalCrossentropy
from keras_attention.training.metrics import MaskedMean, read_positions


def stack_ends(outputs):
    """Return the start and end logits of a `question_answerer` as one tensor (B, 2, T).

    `outputs` is a dict with `"start_logits"` and `"end_logits"` (B, T).
    """
    return ops.stack([outputs["start_logits"], outputs["end_logits"]], axis=1)


@keras.saving.register_keras_serializable(package="keras_attention")
class SpanCrossentropy(MaskedSparseCategoricalCrossentropy):
    """Loss of `ka.models.question_answerer`: the mean cross-entropy of the start and the end.

    See Devlin et al. (2019, section 4.2). Compile the loss with `ka.training.JointModel`, because
    the model has two outputs. The class has the arguments of `MaskedSparseCategoricalCrossentropy`,
    such as `ignore_class`. Avoid `label_smoothing`, which expects some probability at every
    position, also at positions that cannot be an answer and have the logit -100.

    Call arguments:
        y_true: int (B, 2), the first and the last position of the answer, counted from 0. Rows of
            -1 are ignored.
        y_pred: dict with `"start_logits"` and `"end_logits"` (B, T).
        sample_weight: (B,) or (B, 2).

    ```python
    import numpy as np
    import keras_attention as ka

    logits = np.log([[0.1, 0.8, 0.1]]).astype("float32")
    outputs = {"start_logits": logits, "end_logits": logits}
    loss = ka.training.SpanCrossentropy()(np.array([[1, 2]]), outputs)
    assert abs(float(loss) + (np.log(0.8) + np.log(0.1)) / 2) < 1e-6
    ```
    """

    default_name = "span_crossentropy"

    def get_loss_shape(self, y_pred):
        return (*shape_of(y_pred["start_logits"])[:1], 2)

    def call(self, y_true, y_pred):
        return super().call(y_true, stack_ends(y_pred))


@keras.saving.register_keras_serializable(package="keras_attention")
class SpanF1(MaskedMean):
    """F1 of the overlap between the predicted and the true answer, counted in positions.

    The predicted span has the largest sum of start and end logit, as `ka.data.search_span` finds
    it. Compile the metric with `ka.training.JointModel`.

    Args:
        maximum_answer: int, the maximum number of positions in a predicted span.
        ignore_class: int, the label in `y_true` that marks rows to ignore.

    Call arguments of `update_state`:
        y_true: int (B, 2), the first and the last position of the answer. Both are 0 if the
            question has no answer.
        y_pred: dict with `"start_logits"` and `"end_logits"` (B, T).
        sample_weight: (B,) or (B, 2).

    ```python
    import numpy as np
    import keras_attention as ka

    f1 = ka.training.SpanF1(maximum_answer=3)
    logits = np.array([[[0.0, 1.0, 5.0, 0.0]], [[0.0, 9.0, 2.0, 1.0]]])
    f1.update_state(np.array([[1, 2]]), dict(zip(["start_logits", "end_logits"], logits)))
    assert round(float(f1.result()), 4) == 0.6667  # the best span is 1 to 1: 1 + 9 is above 5 + 2
    ```
    """

    default_name, own_arguments = "span_f1", ("maximum_answer",)

    def __init__(self, maximum_answer=30, ignore_class=-1, name=None, dtype=None):
        super().__init__(ignore_class=ignore_class, name=name, dtype=dtype)
        self.maximum_answer = check_whole_number("SpanF1", "maximum_answer", maximum_answer)

    def update_state(self, y_true, y_pred, sample_weight=None):
        logits = ops.cast(stack_ends(y_pred), "float32")
        labels, weights = read_positions(self, y_true, logits, sample_weight)
        weights = ops.min(weights, axis=-1)
        start, end = self._find_best(logits)
        first, last = labels[:, 0], labels[:, 1]
        shared = ops.minimum(end, last) - ops.maximum(start, first) + 1
        shared = ops.cast(ops.maximum(shared, 0), "float32")
        sizes = ops.cast(end - start + last - first + 2, "float32")
        super().update_state(ops.divide(2.0 * shared, ops.maximum(sizes, 1.0)), weights)

    def _find_best(self, logits):
        """Return the first and last position of the best span of each row, two int32 (B,)."""
        length = ops.shape(logits)[2]
        scores = ops.expand_dims(logits[:, 0], 2) + ops.expand_dims(logits[:, 1], 1)  # (B, T, T)
        positions = ops.arange(length)
        start, end = ops.expand_dims(positions, 1), ops.expand_dims(positions, 0)
        ahead = end - start
        fits = ops.logical_and(ahead >= 0, ahead < self.maximum_answer)
        fits = ops.logical_and(fits, ops.logical_or(start > 0, end == 0))  # 0 means "no answer"
        scores = ops.where(fits, scores, -1e9)
        best = ops.argmax(ops.reshape(scores, (-1, length * length)), axis=1)
        best = ops.cast(best, "int32")
        length = ops.cast(length, "int32")
        return ops.floor_divide(best, length), ops.mod(best, length)
