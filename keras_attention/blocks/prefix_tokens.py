"""Learned tokens in front of a sequence."""

import keras
from keras import ops

from keras_attention.core import scope, shapes
from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class PrefixTokens(OwnArguments, keras.layers.Layer):
    """Puts learned vectors in front of every sequence, the same ones each time.

    One is a class token, whose output stands for the whole sequence (Devlin et al., 2019, section
    3); several are registers (Darcet et al., 2024) or a soft prompt (Lester et al., 2021, section
    2). `Pooling("cls")` reads the first one, `Pooling("mean", num_prefix_tokens=n)` leaves all out.

    Args:
        num_tokens: int P.

    Call arguments:
        inputs: (B, T, D), where their positions are added already: a learned vector needs none.

    Returns (B, P + T, D). Its mask is that of the inputs, with P tokens in front that are visible.

    ```python
    import numpy as np
    import keras_attention as ka

    prefix = ka.blocks.PrefixTokens(2)
    assert prefix(np.ones((3, 5, 4))).shape == (3, 7, 4)
    mask = prefix.compute_mask(None, np.array([[True, True, False]]))
    assert np.array_equal(mask, [[True, True, True, True, False]])
    ```
    """

    own_arguments = ("num_tokens",)
    weight_axes = {"tokens": ("rows", "rows", "embed")}

    def __init__(self, num_tokens=1, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.num_tokens = check_whole_number("PrefixTokens", "num_tokens", num_tokens)

    def build(self, input_shape):
        self.tokens = self.add_weight(
            shape=(1, self.num_tokens, input_shape[-1]),
            initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            name="tokens",
        )

    def call(self, inputs):
        scope.refuse_decoding(f"{self.name} puts tokens in front of those of every call.")
        tokens = shapes.tile(ops.cast(self.tokens, inputs.dtype), (ops.shape(inputs)[0], 1, 1))
        return ops.concatenate([tokens, inputs], axis=1)

    def compute_mask(self, inputs, previous=None):
        if previous is None:
            return None
        return ops.pad(previous, ((0, 0), (self.num_tokens, 0)), constant_values=True)

    def compute_output_shape(self, input_shape):
        batch, length, width = input_shape
        return (batch, None if length is None else length + self.num_tokens, width)
