"""`ConvolutionModule`: the convolution of a Conformer block."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.activations import get_activation, serialize_activation
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, part_tokens
from keras_attention.core.weight_axes import name_axes

_NORMALIZATIONS = {"batch_norm": keras.layers.BatchNormalization, **NORMALIZATIONS}


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionModule(OwnArguments, ProjectionOwner):
    """The convolution of a Conformer block: gated, depthwise, over time (Gulati et al., 2020).

    The layer computes `output(act(n(depthwise(glu(gate(x))))))` (figure 2): a projection to twice
    the width, a gated linear unit, a depthwise convolution, a norm, the activation and a
    projection. The first norm and the last dropout in the figure are part of `ConformerBlock`.

    Args:
        kernel_size: int, the number of positions that the convolution reads.
        activation: a Keras activation or its name, applied after the norm.
        normalization: `"batch_norm"` as in the paper. Or `"layer_norm"`, `"layer_norm_no_bias"` or
            `"rms_norm"`, which do not mix the examples of a batch.
        causal: bool, whether the convolution reads only its own and earlier positions, for
            streaming.
        use_bias: bool, whether the projections have a bias.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.

    Returns (B, T, D), with the mask of the inputs. Padding is set to 0 before the convolution and
    ignored by the batch statistics, so it does not change the output for tokens.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.ConvolutionModule(kernel_size=7)
    assert layer(np.ones((2, 20, 8))).shape == (2, 20, 8)
    ```
    """

    own_arguments = ("kernel_size", "normalization", "causal", "use_bias")

    def __init__(
        self,
        kernel_size=31,
        activation="silu",
        normalization="batch_norm",
        causal=False,
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.kernel_size, self.causal, self.use_bias = kernel_size, causal, use_bias
        checks.check_whole_numbers(self, "kernel_size")
        self.activation = get_activation(activation)
        self.normalization = normalization
        checks.check_choice(self, "normalization", _NORMALIZATIONS)
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
        name_axes(dense, kernel=("embed", "inner"))  # "inner", because `glu` splits this axis
        dense.build((None, inputs))
        return dense

    def call(self, inputs, mask=None, training=None):
        length, width = ops.shape(inputs)[1], inputs.shape[-1]
        x = ops.glu(self._gate(merge_tokens(inputs)))
        x = part_tokens(x, inputs, length, width)
        tokens = masks.all_of(mask, scope.is_token(length))
        if tokens is not None:
            x = ops.multiply(x, ops.expand_dims(ops.cast(tokens, x.dtype), axis=2))
        x = self._depthwise(self._pad(x))
        batch = {"mask": mask, "training": training} if self.normalization == "batch_norm" else {}
        x = self.activation(self._norm(x, **batch))
        return part_tokens(self._output_dense(merge_tokens(x)), inputs, length, width)

    def _pad(self, x):
        """Return x (B, T, D) with the additional tokens that the convolution reads at its ends.

        These are zeros. When streaming, the earlier tokens are read from the cache instead.
        """
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

    def get_config(self):
        activation = serialize_activation(self.activation)
        return {**super().get_config(), "activation": activation}
