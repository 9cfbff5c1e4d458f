"""`PatchEmbedding` turns images into sequences of patches, after an optional `ConvolutionStem`."""

import math

import keras
from keras import ops

from keras_attention import positions
from keras_attention.blocks.activations import get_activation, serialize_activation
from keras_attention.blocks.token_embedding import check_embedded
from keras_attention.core import checks, shapes
from keras_attention.core.part import OwnArguments
from keras_attention.core.token_layout import pin_tokens
from keras_attention.core.weight_axes import name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionStem(OwnArguments, keras.layers.Layer):
    """Convolves an image before it is cut into patches (Xiao et al., 2021).

    Batch normalization and the activation follow each 3×3 convolution. With a stem, a vision
    transformer learns from fewer images and in fewer epochs.

    Args:
        filters: tuple of ints, number of filters of each convolution.
        strides: tuple of ints, the stride of each convolution.
        activation: a Keras activation or its name.

    Call arguments:
        inputs: images (B, height, width, channels).

    Returns (B, height / s, width / s, filters[-1]), where s is the product of the strides. After
    each convolution, height and width are rounded up.

    ```python
    import numpy as np
    import keras_attention as ka

    stem = ka.blocks.ConvolutionStem(filters=(8, 16), strides=(2, 2))
    assert stem(np.ones((2, 28, 28, 1))).shape == (2, 7, 7, 16)
    ```
    """

    own_arguments = ("filters", "strides")

    def __init__(self, filters=(32, 64), strides=(2, 2), activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=4)
        if len(filters) != len(strides):
            raise ValueError(
                f"filters={tuple(filters)} and strides={tuple(strides)} differ in length. Give "
                "one of each for every convolution."
            )
        self.filters, self.strides = tuple(filters), tuple(strides)
        self.activation = get_activation(activation)
        self._steps = []
        for i, (size, stride) in enumerate(zip(self.filters, self.strides, strict=True)):
            self._steps += [
                keras.layers.Conv2D(
                    size, 3, stride, "same", data_format="channels_last", use_bias=False,
                    dtype=self.dtype_policy, name=f"convolution_{i}",
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
        activation = serialize_activation(self.activation)
        return {**super().get_config(), "activation": activation}


@keras.saving.register_keras_serializable(package="keras_attention")
class PatchEmbedding(OwnArguments, keras.layers.Layer):
    """Cuts an image into patches and projects each (Dosovitskiy et al., 2021, equation 1).

    Args:
        hidden_dim: int D, the width of the output.
        patch_size: int or (height, width) in pixels. It must divide the size of the image.
        num_prefix_tokens: int, number of learned tokens before the patches. The first is the class
            token, any others are registers (Darcet et al., 2024).
        position: an encoding of `keras_attention.positions` that is added to all tokens, including
            the prefix, or its name or config. `"learned"` is a learned vector for each token. None
            adds no position.
        dropout: float, the dropout rate for the sum.
        use_bias: bool, whether the projection has a bias.

    Call arguments:
        inputs: images (B, height, width, channels), float.

    Returns (B, T, D), the prefix tokens followed by the patches row by row, where T is
    `num_prefix_tokens` plus the number of patches.

    ```python
    import numpy as np
    import keras_attention as ka

    embed = ka.blocks.PatchEmbedding(16, patch_size=4, num_prefix_tokens=1, position="learned")
    assert embed(np.ones((2, 12, 8, 3))).shape == (2, 1 + 3 * 2, 16)
    ```
    """

    own_arguments = ("hidden_dim", "patch_size", "num_prefix_tokens", "dropout", "use_bias")
    weight_axes = {"prefix": ("rows", "rows", "embed")}

    def __init__(
        self,
        hidden_dim,
        patch_size,
        num_prefix_tokens=1,
        position=None,
        dropout=0.0,
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        checks.check_whole_numbers(self, "hidden_dim")
        self.patch_size = checks.check_height_and_width(self.name, "patch_size", patch_size)
        if isinstance(patch_size, int) and hidden_dim < patch_size:
            raise ValueError(
                f"hidden_dim={hidden_dim} and patch_size={patch_size} look swapped. "
                f"Expected PatchEmbedding(hidden_dim, patch_size), such as ({patch_size}, "
                f"{hidden_dim}). If they are not, give patch_size=({patch_size}, {patch_size})."
            )
        self.num_prefix_tokens, self.dropout, self.use_bias = num_prefix_tokens, dropout, use_bias
        self._learned = position in ("learned", "Learned")
        self.position = (
            None if self._learned else check_embedded(positions.get(position, self.dtype_policy))
        )
        self._projection = keras.layers.Conv2D(
            hidden_dim, self.patch_size, strides=self.patch_size, data_format="channels_last",
            use_bias=use_bias, dtype=self.dtype_policy, name="projection",
        )  # fmt: skip
        name_axes(self._projection, kernel=("window", "window", "channels", "embed"))
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        if len(input_shape) != 4:
            raise ValueError(
                f"{self.name} was called on the shape {tuple(input_shape)}: expected images "
                "(batch, height, width, channels). Add an axis of channels or of the batch."
            )
        _, *size, _ = input_shape
        if None in size or any(
            side % patch for side, patch in zip(size, self.patch_size, strict=True)
        ):
            raise ValueError(
                f"patch_size={self.patch_size} does not divide the image size {tuple(size)}. "
                "Resize or pad the images, or choose a divisor."
            )
        self._projection.build(input_shape)
        if self.num_prefix_tokens:
            self.prefix = self.add_weight(
                shape=(1, self.num_prefix_tokens, self.hidden_dim),
                initializer=keras.initializers.TruncatedNormal(stddev=0.02),
                name="prefix",
            )
        tokens = self._num_tokens(input_shape)
        if self._learned:
            self.position = positions.Learned(tokens, dtype=self.dtype_policy, name="positions")
        if self.position is not None:
            self.position.check_length(tokens)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build((None, tokens, self.hidden_dim))

    def _num_tokens(self, input_shape):
        patches = (
            side // patch for side, patch in zip(input_shape[1:3], self.patch_size, strict=True)
        )
        return self.num_prefix_tokens + math.prod(patches)

    def call(self, inputs, training=None):
        x = self._projection(inputs)
        tokens = self._num_tokens(inputs.shape)
        x = ops.reshape(x, (-1, tokens - self.num_prefix_tokens, self.hidden_dim))
        if self.num_prefix_tokens:
            prefix = shapes.tile(ops.cast(self.prefix, x.dtype), (ops.shape(x)[0], 1, 1))
            x = ops.concatenate([prefix, x], axis=1)
        if self.position is not None:
            x = self.position.embed(x)
        return self._dropout_layer(pin_tokens(x), training=training)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self._num_tokens(input_shape), self.hidden_dim)

    def get_config(self):
        position = "learned"
        if not self._learned:
            position = keras.saving.serialize_keras_object(self.position)
        return {**super().get_config(), "position": position}
