"""Token dropout: in training, some tokens become the unknown one."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenDropout(keras.layers.Layer):
    """Replaces token ids by the unknown id, so that a model learns to do without a word.

    (Iyyer et al., 2015, section 3.2, *word dropout*.) Padding stays padding.

    Args:
        rate: float, the share of tokens replaced in training.
        unknown_id: int, what replaces them.
        seed: int.

    Call arguments:
        inputs: int token ids (B, T). Returns the same shape and dtype.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    ids = np.array([[5, 7, 9, 0]])
    assert np.array_equal(ka.blocks.TokenDropout(0.99)(ids), ids)  # nothing happens at inference
    assert np.array_equal(ka.blocks.TokenDropout(1.0)(ids, training=True), [[1, 1, 1, 0]])
    ```
    """

    def __init__(self, rate, unknown_id=1, seed=None, **kwargs):
        if not 0 <= rate <= 1:
            raise ValueError(f"rate={rate}: expected the share of tokens to drop, from 0 to 1.")
        kwargs.setdefault("dtype", "int32")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate, self.unknown_id, self.seed = rate, unknown_id, seed
        self._generator = keras.random.SeedGenerator(seed) if rate else None

    def call(self, inputs, training=None):
        if not training or not self.rate:
            return inputs
        drawn = keras.random.uniform(ops.shape(inputs), dtype="float32", seed=self._generator)
        dropped = ops.logical_and(ops.less(drawn, self.rate), ops.not_equal(inputs, 0))
        return ops.where(dropped, ops.cast(self.unknown_id, inputs.dtype), inputs)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        config = {"rate": self.rate, "unknown_id": self.unknown_id, "seed": self.seed}
        return {**super().get_config(), **config}
