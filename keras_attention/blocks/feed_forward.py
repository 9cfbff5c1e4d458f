"""The feed-forward network of a block, with or without a gate, and its activations."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core.shapes import merge_tokens, part_tokens
from keras_attention.core.weight_axes import name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
def gelu_tanh(x):
    """GELU with a tanh in the place of the error function (Hendrycks and Gimpel, 2016, section 2).

    What GPT-2, T5 1.1 and many after them were trained with; it differs from `"gelu"` by up to
    5e-4. In `FeedForward` by name.

    Args:
        x: float tensor. Returns the same shape and dtype.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.linspace(-3, 3, 7).astype("float32")
    assert np.allclose(ka.blocks.gelu_tanh(x), keras.activations.gelu(x), atol=5e-4)
    ```
    """
    return keras.activations.gelu(x, approximate=True)


@keras.saving.register_keras_serializable(package="keras_attention")
def quick_gelu(x):
    """`x · sigmoid(1.702 x)`, an approximation of GELU (Hendrycks and Gimpel, 2016, section 2).

    What CLIP was trained with; it differs from `"gelu"` by up to 0.02. In `FeedForward` by name.

    Args:
        x: float tensor. Returns the same shape and dtype.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.linspace(-3, 3, 7).astype("float32")
    assert np.allclose(ka.blocks.quick_gelu(x), keras.activations.gelu(x), atol=0.021)
    ```
    """
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, 1.702)))


ACTIVATIONS = {"gelu_tanh": gelu_tanh, "quick_gelu": quick_gelu}
GATES = {
    "glu": "sigmoid",
    "reglu": "relu",
    "geglu": "gelu",
    "geglu_tanh": "gelu_tanh",
    "swiglu": "silu",
}

# Name of a projection -> the roles of its kernel's axes.
AXES = {"gate": ("embed", "mlp"), "intermediate": ("embed", "mlp"), "output": ("mlp", "embed")}


def get_activation(name):
    """The activation called `name`, or that of the gate called so."""
    name = GATES.get(name, name) if isinstance(name, str) else name
    if isinstance(name, str) and name in ACTIVATIONS:
        return ACTIVATIONS[name]
    return keras.activations.get(name)


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedForward(ProjectionOwner):
    """Two projections with an activation between (Vaswani et al., 2017, section 3.3).

    `output(act(intermediate(x)))`, or gated `output(act(gate(x)) · intermediate(x))` (Shazeer,
    2020) when `activation` is `"glu"`, `"reglu"`, `"geglu"`, `"geglu_tanh"` or `"swiglu"`.

    Args:
        intermediate_dim: int, the width between the projections.
        activation: a Keras activation, its name, `"gelu_tanh"`, `"quick_gelu"`, or the name of a
            gate.
        dropout: float, applied between the projections.
        use_bias: bool, whether the projections have a bias.
        kernel_initializer: a Keras initializer.

    Call arguments:
        inputs: (B, T, D). Returns the same shape; the mask passes through.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.FeedForward(64, activation="swiglu")
    assert layer(np.ones((2, 5, 16))).shape == (2, 5, 16)
    assert len(layer.weights) == 6  # gate, intermediate and output, a kernel and a bias each
    ```
    """

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
        initializer = self.kernel_initializer
        dense = keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=initializer.__class__.from_config(initializer.get_config()),
            **self._projection_arguments(name),
        )
        name_axes(dense, kernel=AXES[name])
        dense.build((None, inputs))
        return dense

    def call(self, inputs, training=None):
        shape = ops.shape(inputs)
        x = merge_tokens(inputs)  # so that bias and activation fuse with the product
        inner = self._intermediate_dense(x)
        if self.gate:
            inner = ops.multiply(self._gate_dense(x), inner)
        x = self._output_dense(self._dropout_layer(inner, training=training))
        return part_tokens(x, inputs, *shape[1:])

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.gate or keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
