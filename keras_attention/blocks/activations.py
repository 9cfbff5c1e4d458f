"""Activations that Keras lacks, a GELU that converts to ONNX, and the activations of gates."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
def gelu(x):
    """Compute GELU, `x / 2 · (1 + erf(x / √2))` (Hendrycks and Gimpel, 2016).

    `FeedForward` uses this function for `activation="gelu"`. It equals `keras.activations.gelu` to
    1e-6, and also converts to ONNX. TensorFlow's own GELU contains the op `Erfc`, which converters
    to ONNX do not know.

    Args:
        x: float tensor.

    Returns a tensor with the shape and dtype of x.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.linspace(-3, 3, 7).astype("float32")
    assert np.allclose(ka.blocks.gelu(x), keras.activations.gelu(x), atol=1e-6)
    ```
    """
    half = ops.multiply(x, 0.5)
    return ops.multiply(half, ops.add(ops.erf(ops.multiply(x, 0.5**0.5)), 1.0))


@keras.saving.register_keras_serializable(package="keras_attention")
def gelu_tanh(x):
    """Compute GELU with a tanh instead of the error function (Hendrycks and Gimpel, 2016).

    GPT-2, T5 1.1 and many later models use this activation. Its values differ from `"gelu"` by up
    to 5e-4. In `FeedForward` use `activation="gelu_tanh"`.

    Args:
        x: float tensor.

    Returns a tensor with the shape and dtype of x.

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
    """Compute `x · sigmoid(1.702 x)`, an approximation of GELU (Hendrycks and Gimpel, 2016).

    CLIP uses this activation. Its values differ from `"gelu"` by up to 0.02. In `FeedForward` use
    `activation="quick_gelu"`.

    Args:
        x: float tensor.

    Returns a tensor with the shape and dtype of x.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.linspace(-3, 3, 7).astype("float32")
    assert np.allclose(ka.blocks.quick_gelu(x), keras.activations.gelu(x), atol=0.021)
    ```
    """
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, 1.702)))


ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "quick_gelu": quick_gelu}
GATES = {
    "glu": "sigmoid",
    "reglu": "relu",
    "geglu": "gelu",
    "geglu_tanh": "gelu_tanh",
    "swiglu": "silu",
}


def get_activation(name):
    """Return the activation function that `name` describes.

    `name` is a function, the name of a Keras activation, `"gelu_tanh"`, `"quick_gelu"`, or a key of
    `GATES`, such as `"swiglu"`, whose gate has the activation `"silu"`.
    """
    name = GATES.get(name, name) if isinstance(name, str) else name
    if isinstance(name, str) and name in ACTIVATIONS:
        return ACTIVATIONS[name]
    return gelu if name is keras.activations.gelu else keras.activations.get(name)


def serialize_activation(activation):
    """Return an activation function as a value for a config: for Keras's functions, the name.

    `gelu` of this file is saved as `"gelu"`.
    """
    return "gelu" if activation is gelu else keras.activations.serialize(activation)
