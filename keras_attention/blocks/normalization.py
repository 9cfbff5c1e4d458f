"""The norms of blocks, and `LayerScale`, which multiplies features by learned factors."""

import functools

import keras
from keras import ops

from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class RMSNormalization(keras.layers.RMSNormalization):
    """A `keras.layers.RMSNormalization` (Zhang and Sennrich, 2019) that keeps the implicit mask.

    Keras's layer drops the mask, so a loss on its output would count padding.

    Args:
        axis: int, the axis to normalize.
        epsilon: float, a small number that is added before the division.

    Call arguments:
        inputs: float, any shape.

    Returns a tensor with the shape, dtype and mask of the inputs.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = ka.blocks.TokenEmbedding(100, 16)(np.array([[5, 7, 0]]))
    y = ka.blocks.RMSNormalization()(x)  # y has the mask of x
    assert np.allclose(np.mean(keras.ops.square(y), axis=-1), 1, atol=1e-2)
    ```
    """

    def __init__(self, axis=-1, epsilon=1e-6, **kwargs):
        super().__init__(axis=axis, epsilon=epsilon, **kwargs)
        self.supports_masking = True


@keras.saving.register_keras_serializable(package="keras_attention")
class LayerScale(OwnArguments, keras.layers.Layer):
    """Multiplies each feature by a learned factor (Touvron et al., 2021, *CaiT*, equation 4).

    Args:
        initial: float, the initial value of all factors. With a small value, a deep stack of blocks
            is close to the identity when training begins.

    Call arguments:
        inputs: (..., D).

    Returns (..., D), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.allclose(ka.blocks.LayerScale(0.1)(np.ones((2, 3, 4))), 0.1)
    ```
    """

    own_arguments = ("initial",)

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


NORMALIZATIONS = {
    "layer_norm": keras.layers.LayerNormalization,
    "layer_norm_no_bias": functools.partial(keras.layers.LayerNormalization, center=False),
    "rms_norm": RMSNormalization,
}
