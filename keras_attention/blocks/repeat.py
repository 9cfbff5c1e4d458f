"""`Repeat`: one block as every layer of a stack."""

import keras
from keras import ops

from keras_attention.blocks.inner_layers import revive_layer, serialize_inner
from keras_attention.core import checks, keras_internals
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.positions import Sinusoidal


@keras.saving.register_keras_serializable(package="keras_attention")
class Repeat(IntegerInputs, keras.layers.Layer):
    """Runs a block `num_layers` times with the same weights (Lan et al., 2020, section 3.1).

    With `coordinates`, the sinusoids of the position, from 0, and of the step, from 1, are added
    before every step (Dehghani et al., 2019, *Universal Transformers*, section 2.1; the number of
    steps is fixed, without adaptive halting).

    A functional model may also call one block several times; either way its attention is recorded
    at every step, under its path, then `path:1`, `path:2`, ...

    Args:
        block: a layer that returns the shape it is called on, such as `EncoderBlock`.
        num_layers: int, how often it runs.
        coordinates: bool, whether position and step are added.

    Call arguments:
        inputs: (B, T, D).
        mask, attention_mask, segment_ids, positions: as the block takes them, for every step.
            `positions` are those of the coordinates too.

    Returns (B, T, D), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    albert = ka.blocks.Repeat(
        ka.blocks.EncoderBlock(
            ka.attention.MultiHeadAttention(4, 8), ka.blocks.FeedForward(64), norm="post"
        ),
        num_layers=12,
    )
    x = np.ones((2, 5, 32), "float32")
    with ka.visualization.record_attention(albert) as maps:
        assert albert(x).shape == (2, 5, 32)
    assert len(maps) == 12 and len(albert.weights) == 16
    ```
    """

    def __init__(self, block, num_layers, coordinates=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.block = revive_layer("block", block)
        self.num_layers, self.coordinates = num_layers, coordinates
        checks.check_whole_numbers(self, "num_layers")

    def build(self, input_shape):
        if not self.block.built:
            self.block.build(input_shape)

    def call(
        self,
        inputs,
        mask=None,
        attention_mask=None,
        segment_ids=None,
        positions=None,
        training=None,
    ):
        x = inputs
        mask = keras_internals.get_mask(inputs) if mask is None else mask
        given = dict(attention_mask=attention_mask, segment_ids=segment_ids, positions=positions)
        given = {name: value for name, value in given.items() if value is not None}
        if mask is not None and keras_internals.takes_argument(self.block, "mask"):
            given["mask"] = mask
        for step in range(1, self.num_layers + 1):
            if self.coordinates:
                x = self._with_coordinates(x, positions, step)
            x = self.block(x, training=training, **given)
        return x

    @staticmethod
    def _with_coordinates(x, positions, step):
        waves = Sinusoidal()
        x = waves.embed(x, positions)
        of_step = waves.waves(ops.convert_to_tensor([step], "int32"), x.shape[2])  # (1, 1, D)
        return ops.cast(ops.cast(x, "float32") + of_step, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "block": serialize_inner(self.block),
            "num_layers": self.num_layers,
            "coordinates": self.coordinates,
        }
