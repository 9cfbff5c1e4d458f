"""A convolutional stem in front of a vision transformer."""

import keras


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionStem(keras.layers.Layer):
    """3×3 convolutions in place of the patch projection (Xiao et al., 2021).

    Each is followed by batch normalization and the activation. With it, a vision transformer
    learns from small sets and in few epochs.

    Args:
        filters: tuple of ints, one for each convolution.
        strides: tuple of ints, as many; each divides the image's size.
        activation: a Keras activation or its name.

    Call arguments:
        inputs: images (B, height, width, channels). Returns (B, height / s, width / s,
        filters[-1]), s the product of the strides, rounded up at each step.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    stem = ka.blocks.ConvolutionStem(filters=(8, 16), strides=(2, 2))
    assert stem(np.ones((2, 28, 28, 1))).shape == (2, 7, 7, 16)
    ```
    """

    def __init__(self, filters=(32, 64), strides=(2, 2), activation="relu", **kwargs):
        super().__init__(**kwargs)
        if len(filters) != len(strides):
            raise ValueError(
                f"filters={tuple(filters)} and strides={tuple(strides)} must be of equal length: "
                "one of each for every convolution."
            )
        self.filters, self.strides = tuple(filters), tuple(strides)
        self.activation = keras.activations.get(activation)
        self._steps = []
        for i, (size, stride) in enumerate(zip(self.filters, self.strides, strict=True)):
            self._steps += [
                keras.layers.Conv2D(
                    size, 3, stride, "same", use_bias=False, dtype=self.dtype_policy,
                    name=f"convolution_{i}",
                ),
                keras.layers.BatchNormalization(
                    momentum=0.9, dtype=self.dtype_policy, name=f"norm_{i}"),
                keras.layers.Activation(self.activation, dtype=self.dtype_policy),
            ]  # fmt: skip

    def build(self, input_shape):
        for step in self._steps:
            step.build(input_shape)
            input_shape = step.compute_output_shape(input_shape)

    def call(self, inputs, training=None):
        x = inputs
        for step in self._steps:
            x = step(x, training=training) if "norm" in step.name else step(x)
        return x

    def compute_output_shape(self, input_shape):
        for step in self._steps:
            input_shape = step.compute_output_shape(input_shape)
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "strides": self.strides,
            "activation": keras.activations.serialize(self.activation),
        }
