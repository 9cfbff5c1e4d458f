"""Convolutions that make few vectors of many frames, in front of an encoder of sound."""

import math

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.shapes import merges_tokens


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionSubsampling(ProjectionOwner):
    """Convolutions of stride 2 over frames and features, and a projection (Gulati et al., 2020).

    3×3 convolutions, each followed by the activation, halve both axes: two of them make one vector
    of four frames. What is left of the features is projected to the width of the model.

    Args:
        hidden_dim: int D.
        factor: int, a power of two: how many frames make one vector. 1 only projects.
        filters: int, of each convolution; None is `hidden_dim`.
        activation: a Keras activation or its name.
        causal: bool, whether a vector sees no frames after its own first, for streaming.

    Call arguments:
        inputs: (B, T, F).
        mask: bool (B, T), True = a frame, those of a row first; from the implicit mask.

    Returns (B, ⌈T / factor⌉, D) with the mask of as many places: `count_vectors(T)`. Padding enters
    every convolution as 0, so that it changes nothing. Piece by piece, in a decoding scope, pieces
    are multiples of `factor` frames.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.ConvolutionSubsampling(16, factor=4)
    assert layer(np.ones((2, 50, 80))).shape == (2, 13, 16)
    assert layer.count_vectors(50) == 13
    ```
    """

    def __init__(
        self, hidden_dim, factor=4, filters=None, activation="relu", causal=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.hidden_dim, self.factor = hidden_dim, factor
        self.filters = hidden_dim if filters is None else filters
        checks.check_whole_numbers(self, "hidden_dim", "factor", "filters")
        if self.factor & (self.factor - 1):
            raise ValueError(
                f"ConvolutionSubsampling(factor={factor}): factor must be a power of two."
            )
        self.activation, self.causal = keras.activations.get(activation), causal
        self._convolutions = [
            keras.layers.Conv2D(
                self.filters,
                3,
                2,
                data_format="channels_last",
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            for i in range(int(math.log2(self.factor)))
        ]

    def count_vectors(self, frames):
        """How many vectors so many frames make: of an int, or of an int tensor."""
        return -(-frames // self.factor)

    def build(self, input_shape):
        features, channels = input_shape[-1], 1
        for convolution in self._convolutions:
            convolution.build((None, None, None, channels))
            features, channels = -(-features // 2), self.filters
        self._projection = keras.layers.Dense(
            self.hidden_dim, **self._projection_arguments("projection")
        )
        self._projection.build((None, features * channels))

    def call(self, inputs, mask=None):
        x = ops.expand_dims(inputs, axis=3)  # (B, T, F, 1)
        kept = None if mask is None else ops.cast(mask, x.dtype)  # GPUs slice no bools
        for convolution in self._convolutions:
            if kept is not None:
                x = ops.multiply(x, ops.expand_dims(ops.expand_dims(kept, axis=2), axis=3))
                kept = kept[:, ::2]
            x = self.activation(convolution(self._with_neighbours(x, convolution)))
        shape = ops.shape(x)
        width = x.shape[2] * x.shape[3]
        rows = (-1,) if merges_tokens() else shape[:2]
        x = self._projection(ops.reshape(x, (*rows, width)))
        x = ops.reshape(x, (shape[0], shape[1], self.hidden_dim))
        if kept is not None:
            keras_internals.set_mask(x, ops.greater(kept, 0))
        return x

    def _with_neighbours(self, x, convolution):
        """(B, T, F, C) with the frames around that the convolution reaches, or zeros."""
        before, after = (2, 0) if self.causal else (1, 1)
        decoding = scope.current(scope.Decoding)
        slot = None if decoding is None else decoding.slot(self, convolution.name)
        if slot is not None and slot.tracing:
            if after:
                scope.refuse_decoding(
                    f"{self.name} looks ahead. Use ConvolutionSubsampling(causal=True)."
                )
            state = scope.State((before, *x.shape[2:]), self.compute_dtype)
            slot.declare(**{convolution.name: state})
        elif slot is not None:
            x = ops.concatenate([ops.cast(slot[convolution.name], x.dtype), x], axis=1)
            slot.update(**{convolution.name: x[:, -before:]})
            before = 0
        return ops.pad(x, ((0, 0), (before, after), (1, 1), (0, 0)))

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
            "filters": self.filters,
            "activation": keras.activations.serialize(self.activation),
            "causal": self.causal,
        }
