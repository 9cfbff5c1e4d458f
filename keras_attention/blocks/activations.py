"""Activations that Keras knows, but not by a name."""

import keras


@keras.saving.register_keras_serializable(package="keras_attention")
def gelu_tanh(x):
    """GELU with a tanh in the place of the error function (Hendrycks and Gimpel, 2016, section 2).

    What GPT-2, T5 1.1 and many after them were trained with; it differs from `"gelu"` by up to
    5e-4. In `FeedForward` by name.

    Args:
        x: float tensor. Returns the same shape and dtype.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.linspace(-3, 3, 7).astype("float32")
    assert np.allclose(ka.blocks.gelu_tanh(x), keras.activations.gelu(x), atol=5e-4)
    ```
    """
    return keras.activations.gelu(x, approximate=True)
