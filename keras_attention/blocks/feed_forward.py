"""`FeedForward`: the feed-forward network of a block."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner, copy_initializer
from keras_attention.blocks.activations import GATES, get_activation, serialize_activation
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merge_tokens, part_tokens
from keras_attention.core.weight_axes import name_axes

# {name of a projection: roles of its kernel's axes}, to distribute weights over devices
AXES = {"gate": ("embed", "mlp"), "intermediate": ("embed", "mlp"), "output": ("mlp", "embed")}


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedForward(OwnArguments, ProjectionOwner):
    """The feed-forward network of a Transformer block (Vaswani et al., 2017, section 3.3).

    The layer computes `output(act(intermediate(x)))`, two projections with an activation in
    between. If `activation` is one of the gates `"glu"`, `"reglu"`, `"geglu"`, `"geglu_tanh"` or
    `"swiglu"`, it computes `output(act(gate(x)) · intermediate(x))` instead (Shazeer, 2020).

    Args:
        intermediate_dim: int, the width between the projections.
        activation: a Keras activation or its name, `"gelu_tanh"`, `"quick_gelu"`, or a gate.
        dropout: float, the dropout rate between the projections.
        use_bias: bool, whether the projections have a bias.
        kernel_initializer: a Keras initializer for the kernels of the projections.

    Call arguments:
        inputs: (B, T, D).

    Returns (B, T, D), with the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FeedForward(64, activation="swiglu")
    assert layer(np.ones((2, 5, 16))).shape == (2, 5, 16)
    assert len(layer.weights) == 6  # gate, intermediate and output, a kernel and a bias each
    ```
    """

    own_arguments = ("intermediate_dim", "dropout", "use_bias", "kernel_initializer")

    def __init__(
        self,
        intermediate_dim,
        activation="gelu",
        dropout=0.0,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim, self.dropout, self.use_bias = intermediate_dim, dropout, use_bias
        self.gate = activation if isinstance(activation, str) and activation in GATES else None
        self.activation = get_activation(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        inner, outer = self.intermediate_dim, input_shape[-1]
        self._gate_dense = self._dense(inner, outer, "gate", self.activation) if self.gate else None
        self._intermediate_dense = self._dense(
            inner, outer, "intermediate", None if self.gate else self.activation
        )
        self._output_dense = self._dense(outer, inner, "output")

    def _dense(self, units, inputs, name, activation=None):
        dense = keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=copy_initializer(self.kernel_initializer),
            **self._projection_arguments(name),
        )
        name_axes(dense, kernel=AXES[name])
        dense.build((None, inputs))
        return dense

    def call(self, inputs, training=None):
        shape = ops.shape(inputs)
        x = merge_tokens(inputs)  # compilers fuse bias and activation into a product of matrices
        inner = self._intermediate_dense(x)
        if self.gate:
            inner = ops.multiply(self._gate_dense(x), inner)
        x = self._output_dense(self._dropout_layer(inner, training=training))
        return part_tokens(x, inputs, *shape[1:])

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        activation = self.gate or serialize_activation(self.activation)
        return {**super().get_config(), "activation": activation}
