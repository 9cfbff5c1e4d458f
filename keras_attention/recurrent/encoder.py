"""The recurrent encoder, and the bridge from its final states to a decoder's initial states."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.core.recur import recur
from keras_attention.recurrent import cells

# Keras's layers for these cells can use cuDNN.
LAYERS = {keras.layers.GRUCell: keras.layers.GRU, keras.layers.LSTMCell: keras.layers.LSTM}


@keras.saving.register_keras_serializable(package="keras_attention")
class RecurrentEncoder(OwnArguments, keras.layers.Layer):
    """A stack of recurrent layers over a sequence, in one or both directions.

    With two directions, each output contains the whole context of its token (Schuster and Paliwal,
    1997, and Bahdanau et al., 2015, section 3.2). Training uses Keras's own loop. Exported models
    and models that generate with a cache use `keras_attention.recurrent.recur`, which needs only
    built-in operations of LiteRT.

    Args:
        cell: a Keras cell, such as `keras.layers.GRUCell(64)`. It is copied for each layer and
            direction.
        num_layers: int, the number of layers.
        bidirectional: bool, whether each layer has a second cell that reads backwards. The outputs
            of both cells are concatenated.
        dropout: float, the dropout rate between layers (Zaremba et al., 2014).

    Call arguments:
        inputs: (B, S, D).
        mask: bool (B, S), True = a token. Keras fills it from the implicit mask.
        training: bool, whether dropout is active.

    Returns:
        The outputs (B, S, E) of the last layer, and a list of the final states (B, E) of all
        layers. E is the size of the cell, or twice that if bidirectional.

    Masking: padding on either side does not change the states. At padding, the outputs are zero.
    The outputs have the implicit mask of the inputs.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    encoder = ka.recurrent.RecurrentEncoder(keras.layers.LSTMCell(8), num_layers=2)
    encoded, states = encoder(np.random.rand(3, 7, 4))
    assert encoded.shape == (3, 7, 16)
    assert [state.shape for state in states] == [(3, 16)] * 4  # h and c of two layers
    ```
    """

    own_arguments = ("cell", "num_layers", "bidirectional", "dropout")

    def __init__(self, cell, num_layers=1, bidirectional=True, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.cell, self.num_layers = cells.check_cell(cell), num_layers
        checks.check_whole_numbers(self, "num_layers")
        self.bidirectional, self.dropout = bidirectional, dropout
        ways = ("forward", "backward")[: 1 + bidirectional]
        self._layers_of = _Rows(
            [[self._layer(i, way) for way in ways] for i in range(self.num_layers)], name="layers"
        )
        self._dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _layer(self, i, way):
        kwargs = dict(
            return_sequences=True,
            return_state=True,
            go_backwards=way == "backward",
            dtype=self.dtype_policy,
            name=f"layer_{i}_{way}",
        )
        if type(self.cell) in LAYERS:
            config = self.cell.get_config()
            return LAYERS[type(self.cell)].from_config({**config, **kwargs})
        return keras.layers.RNN(copy_part(self.cell), **kwargs)

    def build(self, input_shape):
        shape = tuple(input_shape)
        for layers in self._layers_of.rows():
            for layer in layers:
                layer.build(shape)
            shape = (*shape[:2], self._width)

    @property
    def _width(self):
        return cells.output_size(self.cell) * (1 + self.bidirectional)

    def call(self, inputs, mask=None, training=None):
        x, states = inputs, []
        for i, layers in enumerate(self._layers_of.rows()):
            x = self._dropout_layer(x, training=training) if i else x
            outputs, ends = zip(
                *(_run_layer(each, x, mask, training) for each in layers), strict=True
            )
            x = ops.concatenate(outputs, axis=-1)
            states += [ops.concatenate(pair, axis=-1) for pair in zip(*ends, strict=True)]
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, axis=2), x, ops.zeros_like(x))
        return x, states

    def compute_mask(self, inputs, previous=None):
        return previous, [None] * self._num_states

    @property
    def _num_states(self):
        return self.num_layers * len(cells.state_sizes(self.cell))

    def compute_output_shape(self, input_shape):
        ways = 1 + self.bidirectional
        states = [(input_shape[0], ways * size) for size in cells.state_sizes(self.cell)]
        return (*input_shape[:2], self._width), states * self.num_layers


class _Rows(keras.layers.Layer):
    """Holds lists of layers so that Keras finds the layers when it saves weights.

    Keras versions before 3.15 do not save layers in a list of lists. The attributes have the names
    that Keras 3.15 would use, so that files saved with a list of lists still load.
    """

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.num_rows = len(rows)
        for i, row in enumerate(rows):
            setattr(self, f"container_{i}" if i else "container", row)
        self.built = True  # `RecurrentEncoder` builds the layers

    def rows(self):
        return [getattr(self, f"container_{i}" if i else "container") for i in range(self.num_rows)]


def _run_layer(layer, x, mask, training):
    """Run a Keras RNN layer on x. Return its output (B, S, U) and a list of its final states.

    The output of a layer that runs backwards is in the order of the input, too.

    Args:
        layer: a Keras layer such as `keras.layers.GRU`, which returns sequences and states.
        x: (B, S, D).
        mask: bool (B, S), True = a token, or None.
        training: bool, as in Keras.
    """
    if scope.current(scope.Export) or scope.current(scope.Decoding):
        dtype, sizes = layer.cell.compute_dtype, cells.state_sizes(layer.cell)
        states = [ops.zeros((ops.shape(x)[0], size), dtype=dtype) for size in sizes]

        def step(x, states):
            return cells.step_cell(layer.cell, x, states)

        return recur(step, x, states, mask, backwards=layer.go_backwards)
    output, *states = layer(x, mask=mask, training=training)
    if layer.go_backwards:  # Keras returns the outputs in the order of computation
        output = ops.flip(output, axis=1)
    return output, keras.tree.flatten(states)


@keras.saving.register_keras_serializable(package="keras_attention")
class Bridge(ProjectionOwner):
    """Projects an encoder's final states to a decoder's initial states by dense layers.

    For one state the layer computes `s_0 = tanh(W_s h_1)` (Bahdanau et al., 2015, appendix A.2.2).
    If encoder and decoder have the same number of states, each state of the decoder is computed
    from the corresponding state of the encoder. Otherwise it is computed from all states of the
    encoder.

    Args:
        sizes: list of ints, the sizes of the decoder's states, such as `state_sizes(cell)`.
        activation: a Keras activation of the dense layers, or its name.

    Call arguments:
        states: list of tensors (B, any size), the encoder's final states.

    A call returns a list of tensors (B, size), one for each of `sizes`.

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
        self.sizes = [int(size) for size in sizes]
        self.activation = keras.activations.get(activation)
        self._dense = [
            keras.layers.Dense(
                size, activation=self.activation, **self._projection_arguments(f"state_{i}")
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

    def get_config(self):
        activation = keras.activations.serialize(self.activation)
        return {**super().get_config(), "sizes": self.sizes, "activation": activation}
