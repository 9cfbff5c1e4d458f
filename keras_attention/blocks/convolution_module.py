"""The convolution module of a Conformer."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks, scope
from keras_attention.core.shapes import merge_tokens, part_tokens
from keras_attention.core.weight_axes import name_axes

_NORMALIZATIONS = {"batch_norm": keras.layers.BatchNormalization, **NORMALIZATIONS}


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionModule(ProjectionOwner):
    """A gated depthwise convolution over time (Gulati et al., 2020, figure 2).

    `output(act(n(depthwise(glu(gate(x))))))`: a projection to twice the width, a gated linear
    unit, a depthwise convolution, a norm, the activation and a projection. The
    figure's first norm and last dropout belong to the block.

    Args:
        kernel_size: int, how many positions the convolution sees.
        activation: a Keras activation or its name, after the norm.
        normalization: `"batch_norm"`, the paper's; or `"layer_norm"` or `"rms_norm"`, which do not
            mix the examples of a batch.
        causal: bool, whether the convolution sees earlier positions only, for streaming.
        use_bias: bool, whether the projections have a bias.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token; filled by Keras from the implicit mask.

    Padding enters the convolution as 0, so that it changes no token, and is left out of the
    statistics of the batch. Returns (B, T, D); the mask passes through.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.ConvolutionModule(kernel_size=7)
    assert layer(np.ones((2, 20, 8))).shape == (2, 20, 8)
    ```
    """

    def __init__(
        self,
        kernel_size=31,
        activation="silu",
        normalization="batch_norm",
        causal=False,
        use_bias=True,
        **kwargs,
    ):
        if normalization not in _NORMALIZATIONS:
            raise ValueError(
                f"normalization={normalization!r}: expected one of {', '.join(_NORMALIZATIONS)}."
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.kernel_size, self.causal, self.use_bias = kernel_size, causal, use_bias
        checks.check_whole_numbers(self, "kernel_size")
        self.activation = keras.activations.get(activation)
        self.normalization = normalization
        self._depthwise = keras.layers.DepthwiseConv1D(
            kernel_size,
            use_bias=False,
            data_format="channels_last",
            dtype=self.dtype_policy,
            name="depthwise",
        )
        self._norm = _NORMALIZATIONS[normalization](dtype=self.dtype_policy, name="norm")

    def build(self, input_shape):
        width = input_shape[-1]
        self._gate = self._projection(2 * width, width, "gate")
        self._output_dense = self._projection(width, width, "output")
        self._depthwise.build((None, None, width))
        self._norm.build((None, None, width))

    def _projection(self, units, inputs, name):
        dense = keras.layers.Dense(
            units, use_bias=self.use_bias, **self._projection_arguments(name)
        )
        name_axes(dense, kernel=("embed", "inner"))  # halves of the first go separate ways
        dense.build((None, inputs))
        return dense

    def call(self, inputs, mask=None, training=None):
        length, width = ops.shape(inputs)[1], inputs.shape[-1]
        x = ops.glu(self._gate(merge_tokens(inputs)))
        x = part_tokens(x, inputs, length, width)
        tokens = masks.all_of(mask, scope.is_token(length))
        if tokens is not None:
            x = ops.multiply(x, ops.expand_dims(ops.cast(tokens, x.dtype), axis=2))
        x = self._depthwise(self._with_neighbours(x))
        batch = {"mask": mask, "training": training} if self.normalization == "batch_norm" else {}
        x = self.activation(self._norm(x, **batch))
        return part_tokens(self._output_dense(merge_tokens(x)), inputs, length, width)

    def _with_neighbours(self, x):
        """(B, T, D) with the tokens before and after that the kernel reaches, or zeros."""
        before = self.kernel_size - 1 if self.causal else (self.kernel_size - 1) // 2
        after = self.kernel_size - 1 - before
        decoding = scope.current(scope.Decoding)
        if decoding is None or self.kernel_size == 1:
            return ops.pad(x, ((0, 0), (before, after), (0, 0)))
        slot = decoding.slot(self)
        if slot.tracing:
            if after:
                scope.refuse_decoding(
                    f"{self.name} looks ahead. Use ConvolutionModule(causal=True)."
                )
            slot.declare(inputs=scope.State((before, x.shape[2]), self.compute_dtype))
            return ops.pad(x, ((0, 0), (before, after), (0, 0)))
        x = ops.concatenate([ops.cast(slot["inputs"], x.dtype), x], axis=1)
        slot.update(inputs=x[:, -before:])
        return x

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "activation": keras.activations.serialize(self.activation),
            "normalization": self.normalization,
            "causal": self.causal,
            "use_bias": self.use_bias,
        }
