"""`LocalWindow`: predicts the part of a source to which a recurrent decoder attends."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class LocalWindow(OwnArguments, keras.layers.Layer):
    """Predicts which part of the source to attend to (Luong et al., 2015, section 3.2, *local-p*).

    `AttentionCell` takes it as `local=`. The layer predicts the center of a window, `p = n
    sigmoid(vᵀ tanh(W h))`, where n is the number of tokens in the source, without padding. The cell
    hides keys at positions s that are more than `half_width` away from p. It multiplies the
    attention weights of the other keys by `exp(-(s - p)² / 2σ²)`, where σ = half_width / 2
    (equations 9 and 10). As in the paper, they then add up to less than 1.

    Args:
        half_width: int, at least 1, the paper's D.
        units: int, the number of rows of W. None means the size of the state.

    Call arguments:
        state: (B, size of the state), the paper's h_t.
        mask: bool (B, S), True = a token. Padding must come last.

    A call returns two tensors: bool (B, S), True for positions in the window, which may include
    padding, and float32 (B, S), the factors of the weights.

    ```python
    import numpy as np
    import keras_attention as ka

    window = ka.recurrent.LocalWindow(half_width=2)
    near, factors = window(np.random.rand(3, 4), np.ones((3, 20), "bool"))
    assert np.all(np.sum(near, axis=1) <= 5)
    assert np.all(np.asarray(factors) <= 1)
    ```
    """

    weight_axes = {"kernel": ("units", "inner"), "vector": ("units", "inner")}
    own_arguments = ("half_width", "units")

    def __init__(self, half_width, units=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.half_width, self.units = half_width, units
        checks.check_whole_numbers(self, "half_width")
        checks.check_whole_numbers(self, "units", optional=True)

    def build(self, state_shape, mask_shape=None):
        width = state_shape[-1]
        self.kernel = self.add_weight(
            name="kernel", shape=(width, self.units or width), initializer="glorot_uniform"
        )
        self.vector = self.add_weight(
            name="vector", shape=(self.units or width, 1), initializer="glorot_uniform"
        )

    def call(self, state, mask):
        logit = ops.matmul(ops.tanh(ops.matmul(state, self.kernel)), self.vector)  # (B, 1)
        length = ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True)
        center = length * ops.sigmoid(ops.cast(logit, "float32"))
        positions = ops.expand_dims(ops.arange(ops.shape(mask)[1], dtype="float32"), axis=0)
        distance = positions - center  # (B, S)
        sigma = self.half_width / 2
        factors = ops.exp(-ops.square(distance) / (2 * sigma**2))
        return ops.abs(distance) <= self.half_width, factors

    def compute_output_shape(self, state_shape, mask_shape):
        return mask_shape, mask_shape

    def compute_output_spec(self, state, mask):
        return keras.KerasTensor(mask.shape, "bool"), keras.KerasTensor(mask.shape, "float32")
