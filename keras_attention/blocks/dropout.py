"""Dropout of whole tokens, and of one of several vectors of an example."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.core import checks
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenDropout(OwnArguments, keras.layers.Layer):
    """Replaces random token ids in training by the unknown id, so that a model learns to handle it.

    This is the *word dropout* of Iyyer et al. (2015, section 3.2). Padding is not replaced.

    Args:
        rate: float, the fraction of tokens that are replaced in training.
        unknown_id: int, the id that replaces dropped tokens.
        seed: int, the seed of the random numbers. None draws a new seed.
        padding_id: int, the id of padding. None if every id is a token.

    Call arguments:
        inputs: int token ids (B, T). Returns the same shape and dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    ids = np.array([[5, 7, 9, 0]])
    assert np.array_equal(ka.blocks.TokenDropout(0.99)(ids), ids)  # unchanged at inference
    assert np.array_equal(ka.blocks.TokenDropout(1.0)(ids, training=True), [[1, 1, 1, 0]])
    ```
    """

    own_arguments = ("rate", "unknown_id", "seed", "padding_id")

    def __init__(self, rate, unknown_id=1, seed=None, padding_id=0, **kwargs):
        if not 0 <= rate <= 1:
            raise ValueError(f"rate={rate}: expected the share of tokens to drop, from 0 to 1.")
        kwargs.setdefault("dtype", "int32")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate, self.unknown_id, self.seed = rate, unknown_id, seed
        self.padding_id = checks.check_padding_id(type(self).__name__, padding_id)
        self._generator = keras.random.SeedGenerator(seed) if rate else None

    def call(self, inputs, training=None):
        if not training or not self.rate:
            return inputs
        drawn = keras.random.uniform(ops.shape(inputs), dtype="float32", seed=self._generator)
        dropped, tokens = ops.less(drawn, self.rate), masks.token_mask(inputs, self.padding_id)
        dropped = dropped if tokens is None else ops.logical_and(dropped, tokens)
        return ops.where(dropped, ops.cast(self.unknown_id, inputs.dtype), inputs)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="keras_attention")
class PathDropout(OwnArguments, keras.layers.Layer):
    """Concatenates vectors that different paths of a model compute from the same example.

    In training, only one randomly chosen vector of each example is kept, and the other vectors
    become zeros. So each path learns to work without the other paths, and all paths together act as
    an ensemble (Larsson et al., 2017, *FractalNet*, section 3.1, global drop-path).

    Args:
        seed: int, the seed of the random numbers. None draws a new seed.

    Call arguments:
        inputs: list of K tensors (B, D_k), K at least 2.

    Returns (B, D_1 + ... + D_K). In training the kept vector is multiplied by K, so the expected
    value does not change.

    ```python
    import numpy as np
    import keras_attention as ka

    first, second = np.ones((4, 2)), np.ones((4, 1))
    layer = ka.blocks.PathDropout()
    assert np.array_equal(layer([first, second]), np.ones((4, 3)))
    row = np.asarray(layer([first, second], training=True))[0].tolist()
    assert row in ([2.0, 2.0, 0.0], [0.0, 0.0, 2.0])
    ```
    """

    own_arguments = ("seed",)

    def __init__(self, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed
        self._generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        shapes = [tuple(shape) for shape in input_shape] if input_shape else []
        if len(shapes) < 2 or any(len(shape) != 2 for shape in shapes):
            raise ValueError(
                f"PathDropout on inputs of shape {input_shape}: expected two tensors (B, D) or "
                "more. Pass them as a list."
            )

    def call(self, inputs, training=None):
        if training:
            count = len(inputs)
            shape = (ops.shape(inputs[0])[0], 1)
            drawn = keras.random.uniform(shape, 0.0, count, dtype="float32", seed=self._generator)
            drawn = ops.floor(drawn)
            inputs = [
                ops.multiply(x, count * ops.cast(ops.equal(drawn, k), x.dtype))
                for k, x in enumerate(inputs)
            ]
        return ops.concatenate(inputs, axis=-1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], sum(shape[-1] for shape in input_shape))
