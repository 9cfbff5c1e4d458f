"""How much each position counts in a metric."""

from keras import ops

# The padding mask that a model leaves on its output; Keras has no public name for it yet.
from keras.src.backend import get_keras_mask


def position_weights(y_true, y_pred, sample_weight, ignore_class, dtype):
    """The weight of every position of `y_true`: 0 where it is ignored or masked."""
    y_true = ops.convert_to_tensor(y_true)
    weights = ops.cast(ops.not_equal(y_true, ignore_class), dtype)
    mask = get_keras_mask(y_pred)
    if mask is not None:
        weights = weights * ops.cast(mask, dtype)
    if sample_weight is not None:
        sample_weight = ops.convert_to_tensor(sample_weight, dtype=dtype)
        while len(sample_weight.shape) < len(weights.shape):
            sample_weight = ops.expand_dims(sample_weight, -1)
        weights = weights * sample_weight
    return weights
