"""Root mean square normalization that lets masks pass."""

import keras


@keras.saving.register_keras_serializable(package="keras_attention")
class RMSNormalization(keras.layers.RMSNormalization):
    """`keras.layers.RMSNormalization` (Zhang and Sennrich, 2019), which hands on the mask.

    Keras's own loses it, so that after a stack that ends in one a loss counts padding.

    Args:
        axis, epsilon: as Keras's.

    Call arguments:
        inputs: float, any shape. Returns the same shape and dtype.

    Example:

    ```python
    import keras
    import keras_attention as ka

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(100, 16)(tokens)
    model = keras.Model(tokens, ka.blocks.RMSNormalization()(x))
    mask = keras.ops.convert_to_numpy(model(keras.ops.array([[5, 7, 0]]))._keras_mask)
    assert mask.tolist() == [[True, True, False]]
    ```
    """

    def __init__(self, axis=-1, epsilon=1e-6, **kwargs):
        super().__init__(axis=axis, epsilon=epsilon, **kwargs)
        self.supports_masking = True
