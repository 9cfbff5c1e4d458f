"""From where the encoder ends to where the decoder begins."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class Bridge(keras.layers.Layer):
    """Makes a decoder's initial states of an encoder's final ones, one dense layer for each.

    (Bahdanau et al., 2015, appendix A.2.2: `s_0 = tanh(W_s h_1)`.) Where encoder and decoder have
    as many states, each is made of its counterpart, or else each of all.

    Args:
        sizes: list of ints, those of the decoder's states; see `state_sizes`.
        activation: of the dense layers.

    Call arguments:
        states: list of (B, any size), an encoder's final states.

    Returns a list of (B, size).

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    cell = keras.layers.LSTMCell(8)
    bridge = ka.recurrent.Bridge(ka.recurrent.state_sizes(cell))
    states = bridge([np.random.rand(3, 12), np.random.rand(3, 12)])
    assert [state.shape for state in states] == [(3, 8), (3, 8)]
    ```
    """

    def __init__(self, sizes, activation="tanh", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.sizes = [int(size) for size in sizes]
        self.activation = keras.activations.get(activation)
        self._dense = [
            keras.layers.Dense(
                size, activation=self.activation, dtype=self.dtype_policy, name=f"state_{i}"
            )
            for i, size in enumerate(self.sizes)
        ]

    def build(self, states_shape):
        widths = [shape[-1] for shape in states_shape]
        if len(widths) != len(self.sizes):
            widths = [sum(widths)] * len(self.sizes)
        for dense, width in zip(self._dense, widths, strict=True):
            dense.build((None, width))

    def call(self, states):
        if len(states) != len(self.sizes):
            states = [ops.concatenate(states, axis=-1)] * len(self.sizes)
        return [dense(state) for dense, state in zip(self._dense, states, strict=True)]

    def compute_mask(self, states, previous=None):
        return [None] * len(self.sizes)

    def compute_output_shape(self, states_shape):
        return [(states_shape[0][0], size) for size in self.sizes]

    def compute_output_spec(self, states):
        shapes = self.compute_output_shape([state.shape for state in states])
        return [keras.KerasTensor(shape, self.compute_dtype) for shape in shapes]

    def get_config(self):
        activation = keras.activations.serialize(self.activation)
        return {**super().get_config(), "sizes": self.sizes, "activation": activation}
