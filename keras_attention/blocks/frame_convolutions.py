"""Convolutions along time alone, in front of an encoder of sound."""

import math

import keras
from keras import ops

from keras_attention.core import checks, keras_internals


@keras.saving.register_keras_serializable(package="keras_attention")
class FrameConvolutions(keras.layers.Layer):
    """Convolutions over frames, features as their channels (Radford et al., 2022, section 2.2).

    One of stride 1 and others of stride 2, each followed by the activation. Whisper has one of
    each, so that a vector stands for two frames.

    Args:
        hidden_dim: int D, the channels of each.
        factor: int, a power of two: how many frames make one vector.
        kernel_size: int, odd.
        activation: a Keras activation or its name.

    Call arguments:
        inputs: (B, T, F).
        mask: bool (B, T), True = a frame, those of a row first; from the implicit mask.

    Returns (B, ⌈T / factor⌉, D) with the mask of as many places: `count_vectors(T)`. Padding enters
    every convolution as 0, so that it changes nothing.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FrameConvolutions(16)
    assert layer(np.ones((2, 51, 80))).shape == (2, 26, 16)
    assert layer.count_vectors(51) == 26
    ```
    """

    def __init__(self, hidden_dim, factor=2, kernel_size=3, activation="gelu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.hidden_dim, self.factor, self.kernel_size = hidden_dim, factor, kernel_size
        checks.check_whole_numbers(self, "hidden_dim", "factor", "kernel_size")
        if factor & (factor - 1):
            raise ValueError(f"FrameConvolutions(factor={factor}): factor must be a power of two.")
        if kernel_size % 2 == 0:
            raise ValueError(
                f"FrameConvolutions(kernel_size={kernel_size}): expected an odd number, as many "
                "frames before the one in the middle as after it."
            )
        self.activation = keras.activations.get(activation)
        self._convolutions = [
            keras.layers.Conv1D(
                hidden_dim,
                kernel_size,
                2 if i else 1,
                data_format="channels_last",
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            for i in range(1 + int(math.log2(factor)))
        ]

    def count_vectors(self, frames):
        """How many vectors so many frames make: of an int, or of an int tensor."""
        return -(-frames // self.factor)

    def build(self, input_shape):
        channels = input_shape[-1]
        for convolution in self._convolutions:
            convolution.build((None, None, channels))
            channels = self.hidden_dim

    def call(self, inputs, mask=None):
        x, around = inputs, self.kernel_size // 2
        kept = None if mask is None else ops.cast(mask, x.dtype)  # GPUs slice no bools
        for i, convolution in enumerate(self._convolutions):
            if kept is not None:
                x = ops.multiply(x, ops.expand_dims(kept, axis=2))
                kept = kept[:, ::2] if i else kept
            x = self.activation(convolution(ops.pad(x, ((0, 0), (around, around), (0, 0)))))
        if kept is not None:
            keras_internals.set_mask(x, ops.greater(kept, 0))
        return x

    def compute_mask(self, inputs, previous=None):
        return None  # the output carries it

    def compute_output_shape(self, input_shape):
        frames = input_shape[1]
        vectors = None if frames is None else self.count_vectors(frames)
        return (input_shape[0], vectors, self.hidden_dim)

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "factor": self.factor,
            "kernel_size": self.kernel_size,
            "activation": keras.activations.serialize(self.activation),
        }
