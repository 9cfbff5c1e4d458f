"""`Repeat`: a stack whose layers are all the same block."""

import keras
from keras import ops

from keras_attention.blocks.inner_layers import revive_layer, serialize_inner
from keras_attention.core import checks, keras_internals
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.positions import Sinusoidal


@keras.saving.register_keras_serializable(package="keras_attention")
class Repeat(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Runs a block `num_layers` times with the same weights (Lan et al., 2020, section 3.1).

    With `coordinates`, sinusoids of the token's position (starting at 0) and of the step (starting
    at 1) are added before every step (Dehghani et al., 2019, *Universal Transformers*, section
    2.1). There is no adaptive halting. `record_attention` records the attention of all steps. Its
    keys for the second and later steps end in `:1`, `:2`, ...

    Args:
        block: a layer whose output has the shape of its input, such as `EncoderBlock`.
        num_layers: int, the number of steps.
        coordinates: bool, whether to add the sinusoids.

    Call arguments:
        inputs: (B, T, D).
        mask, attention_mask, segment_ids, positions: arguments of the block, passed at every step.
            The sinusoids also use `positions`, int (T,) or (B, T).

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

    own_arguments = ("num_layers", "coordinates")

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
        arguments = dict(
            attention_mask=attention_mask, segment_ids=segment_ids, positions=positions
        )
        arguments = {name: value for name, value in arguments.items() if value is not None}
        if mask is not None and keras_internals.takes_argument(self.block, "mask"):
            arguments["mask"] = mask
        for step in range(1, self.num_layers + 1):
            if self.coordinates:
                x = self._with_coordinates(x, positions, step)
            x = self.block(x, training=training, **arguments)
        return x

    @staticmethod
    def _with_coordinates(x, positions, step):
        waves = Sinusoidal()
        x = waves.embed(x, positions)
        step_waves = waves.waves(ops.convert_to_tensor([step], "int32"), x.shape[2])  # (1, 1, D)
        return ops.cast(ops.cast(x, "float32") + step_waves, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "block": serialize_inner(self.block)}
