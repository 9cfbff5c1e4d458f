"""LayerScale: a learned factor for each feature of a residual branch."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class LayerScale(keras.layers.Layer):
    """Multiplies each feature by a learned factor (Touvron et al., 2021, *CaiT*, equation 4).

    Args:
        initial: float, what the factors start from; small lets deep stacks begin as the identity.

    Call arguments:
        inputs: (..., D). Returns the same shape; the mask passes through.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.allclose(ka.blocks.LayerScale(0.1)(np.ones((2, 3, 4))), 0.1)
    ```
    """

    def __init__(self, initial=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.initial = initial

    def build(self, input_shape):
        self.scale = self.add_weight(
            shape=(input_shape[-1],),
            initializer=keras.initializers.Constant(self.initial),
            name="scale",
        )

    def call(self, inputs):
        return ops.multiply(inputs, self.scale)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "initial": self.initial}
