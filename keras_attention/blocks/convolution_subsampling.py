"""Convolutions before an encoder of sound, which turn many frames into fewer vectors."""

import math

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.activations import get_activation, serialize_activation
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.shapes import merges_tokens


class _FrameStem(ProjectionOwner):
    """Base class of layers that turn T frames (B, T, F) into fewer vectors (B, ⌈T / factor⌉, D).

    D is `hidden_dim`, `factor` a power of two, and `activation` a Keras activation or its name.
    """

    def __init__(self, hidden_dim, factor, activation, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.hidden_dim, self.factor = hidden_dim, factor
        checks.check_whole_numbers(self, "hidden_dim", "factor")
        if factor & (factor - 1):
            raise ValueError(
                f"{type(self).__name__}(factor={factor}): factor must be a power of two."
            )
        self.activation = get_activation(activation)

    def count_vectors(self, frames):
        """Return the number of output vectors for a number of frames, an int or an int tensor."""
        return -(-frames // self.factor)

    def compute_mask(self, inputs, previous=None):
        return None  # `call` attaches the mask to its output

    def compute_output_shape(self, input_shape):
        frames = input_shape[1]
        vectors = None if frames is None else self.count_vectors(frames)
        return (input_shape[0], vectors, self.hidden_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "factor": self.factor,
            "activation": serialize_activation(self.activation),
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionSubsampling(_FrameStem):
    """Shortens sound with convolutions of stride 2 and a projection (Gulati et al., 2020).

    Each 3×3 convolution over frames and features, followed by the activation, halves the number of
    frames and of features. So two convolutions turn four frames into one vector. The remaining
    features are projected to the width of the model.

    Args:
        hidden_dim: int D, the width of the output.
        factor: int, a power of two, the number of frames that become one vector. With 1 there is
            only the projection.
        filters: int, number of filters of each convolution. None is `hidden_dim`.
        activation: a Keras activation or its name.
        causal: bool, whether vector i reads only frames up to index `factor * i`, for streaming.

    Call arguments:
        inputs: (B, T, F), with F features for each of T frames.
        mask: bool (B, T), True = a frame. Padding comes last. Keras fills it from the implicit
            mask.

    Returns (B, ⌈T / factor⌉, D), with an implicit mask if there is a mask. ⌈T / factor⌉ is
    `count_vectors(T)`. Padding is set to 0 before every convolution, so it does not change the
    output for frames. When streaming with a cache, pass a multiple of `factor` frames in each call.

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
        super().__init__(hidden_dim, factor, activation, **kwargs)
        self.filters = hidden_dim if filters is None else filters
        checks.check_whole_numbers(self, "filters")
        self.causal = causal
        settings = dict(kernel_size=3, strides=2, data_format="channels_last")
        self._convolutions = [
            keras.layers.Conv2D(
                self.filters, **settings, dtype=self.dtype_policy, name=f"convolution_{i}"
            )
            for i in range(int(math.log2(self.factor)))
        ]

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
        is_frame = None if mask is None else ops.cast(mask, x.dtype)  # GPUs cannot slice bools
        for convolution in self._convolutions:
            if is_frame is not None:
                x = ops.multiply(x, ops.expand_dims(ops.expand_dims(is_frame, axis=2), axis=3))
                is_frame = is_frame[:, ::2]
            x = self.activation(convolution(self._pad(x, convolution)))
        shape = ops.shape(x)
        width = x.shape[2] * x.shape[3]
        rows = (-1,) if merges_tokens() else shape[:2]
        x = self._projection(ops.reshape(x, (*rows, width)))
        x = ops.reshape(x, (shape[0], shape[1], self.hidden_dim))
        if is_frame is not None:
            keras_internals.set_mask(x, ops.greater(is_frame, 0))
        return x

    def _pad(self, x, convolution):
        """Return x (B, T, F, C) with the additional frames and features that a 3×3 kernel reads.

        These are zeros. When streaming, the earlier frames are read from the cache instead.
        """
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

    def get_config(self):
        return {**super().get_config(), "filters": self.filters, "causal": self.causal}


@keras.saving.register_keras_serializable(package="keras_attention")
class FrameConvolutions(_FrameStem):
    """Shortens sound with convolutions over frames, as in Whisper (Radford et al., 2022, 2.2).

    The features of a frame are the channels of its first convolution. This convolution has stride
    1, the others have stride 2, and each is followed by the activation. Whisper has two
    convolutions, so a vector represents two frames.

    Args:
        hidden_dim: int D, number of channels of each convolution.
        factor: int, a power of two, the number of frames that become one vector.
        kernel_size: int, the number of frames that a convolution reads. It must be odd.
        activation: a Keras activation or its name.

    Call arguments:
        inputs: (B, T, F), with F features for each of T frames.
        mask: bool (B, T), True = a frame. Padding comes last. Keras fills it from the implicit
            mask.

    Returns (B, ⌈T / factor⌉, D), with an implicit mask if there is a mask.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FrameConvolutions(16)
    assert layer(np.ones((2, 51, 80))).shape == (2, 26, 16)
    assert layer.count_vectors(51) == 26
    ```
    """

    def __init__(self, hidden_dim, factor=2, kernel_size=3, activation="gelu", **kwargs):
        super().__init__(hidden_dim, factor, activation, **kwargs)
        self.kernel_size = kernel_size
        checks.check_whole_numbers(self, "kernel_size")
        if kernel_size % 2 == 0:
            raise ValueError(
                f"FrameConvolutions(kernel_size={kernel_size}): expected an odd number, with as "
                "many frames before the middle one as after it."
            )
        settings = dict(data_format="channels_last", dtype=self.dtype_policy)
        self._convolutions = [
            keras.layers.Conv1D(
                hidden_dim, kernel_size, 2 if i else 1, name=f"convolution_{i}", **settings
            )
            for i in range(1 + int(math.log2(factor)))
        ]

    def build(self, input_shape):
        channels = input_shape[-1]
        for convolution in self._convolutions:
            convolution.build((None, None, channels))
            channels = self.hidden_dim

    def call(self, inputs, mask=None):
        x, around = inputs, self.kernel_size // 2
        is_frame = None if mask is None else ops.cast(mask, x.dtype)  # GPUs cannot slice bools
        for i, convolution in enumerate(self._convolutions):
            if is_frame is not None:
                x = ops.multiply(x, ops.expand_dims(is_frame, axis=2))
                is_frame = is_frame[:, ::2] if i else is_frame
            x = self.activation(convolution(ops.pad(x, ((0, 0), (around, around), (0, 0)))))
        if is_frame is not None:
            keras_internals.set_mask(x, ops.greater(is_frame, 0))
        return x

    def get_config(self):
        return {**super().get_config(), "kernel_size": self.kernel_size}
