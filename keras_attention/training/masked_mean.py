"""What the means over positions share: positions that are left out."""

import keras

from keras_attention.training.position_weights import position_weights


class MaskedMean(keras.metrics.Mean):
    """A mean of which some positions are left out; a subclass says of what, in `update_state`.

    Args:
        ignore_class: int, the label of positions that are left out, such as padding.
        name: str. dtype: of the result.
    """

    def __init__(self, ignore_class=-1, name=None, dtype=None):
        super().__init__(name=name or self.default_name, dtype=dtype)
        self.ignore_class = ignore_class

    def weights_of(self, y_true, y_pred, sample_weight=None):
        """How much each position counts, in the shape of `y_true`; 0 where it is left out."""
        return position_weights(y_true, y_pred, sample_weight, self.ignore_class, self.dtype)

    def get_config(self):
        return {**super().get_config(), "ignore_class": self.ignore_class}
