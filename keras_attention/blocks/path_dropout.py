"""`PathDropout`: joins several vectors. Training sees one of them at a time."""

import keras
from keras import ops

from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class PathDropout(OwnArguments, keras.layers.Layer):
    """Joins vectors that are computed in different ways from the same example.

    In training one of them is drawn for each example, and the others are zeros there. So each way
    learns to do without the others, and together they are like an ensemble (Larsson et al., 2017,
    *FractalNet*, section 3.1, global drop-path).

    Args:
        seed: int.

    Call arguments:
        inputs: list of K tensors (B, D_k). Returns (B, D_1 + ... + D_K). In training the vector
            that is kept is multiplied by K, which keeps the mean of the sum.

    Raises:
        ValueError: the inputs are not a list of at least two tensors (B, D).

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
