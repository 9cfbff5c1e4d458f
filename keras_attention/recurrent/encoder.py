"""The recurrent encoder, and the bridge from its final states to a decoder's initial ones."""

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.recurrent import cells
from keras_attention.recurrent.loop import recur

# Keras's layers of these cells use cuDNN where it is installed.
LAYERS = {keras.layers.GRUCell: keras.layers.GRU, keras.layers.LSTMCell: keras.layers.LSTM}


@keras.saving.register_keras_serializable(package="keras_attention")
class RecurrentEncoder(OwnArguments, keras.layers.Layer):
    """Layers of recurrent cells over a sequence, in one direction or both.

    (Schuster and Paliwal, 1997; Bahdanau et al., 2015, section 3.2.) The cells are Keras's, and so
    is the loop in training. In exported files and decoding scopes the loop is
    `keras_attention.recurrent.recur`, which only needs built-in ops.

    Args:
        cell: a Keras cell, such as `keras.layers.GRUCell(64)`. Every layer and direction has one of
            this config.
        num_layers: int.
        bidirectional: bool, whether a second cell in each layer reads backwards. The outputs of
            both are concatenated.
        dropout: float, applied between layers (Zaremba et al., 2014).

    Call arguments:
        inputs: (B, S, D).
        mask: bool (B, S), True = a token. Filled by Keras from the implicit mask.

    Returns:
        The outputs (B, S, E) of the last layer, E the size of the cell, twice in two directions,
        and the list of final states (B, E), for each layer, for each state of the cell.

    Masking: padding changes no state, whichever side it is on, so that both directions begin at a
    token. The outputs are zeros there, and carry the mask.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    encoder = ka.recurrent.RecurrentEncoder(keras.layers.LSTMCell(8), num_layers=2)
    encoded, states = encoder(np.random.rand(3, 7, 4))
    assert encoded.shape == (3, 7, 16)
    assert [state.shape for state in states] == [(3, 16)] * 4  # of two layers h and c
    ```
    """

    own_arguments = ("cell", "num_layers", "bidirectional", "dropout")

    def __init__(self, cell, num_layers=1, bidirectional=True, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
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
        return keras.layers.RNN(cells.copy_cell(self.cell), **kwargs)

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
    """Lists of layers that Keras finds when it saves weights.

    Keras 3.12 to 3.14 do not save layers in a list of lists. Keras 3.15 does, and names the lists
    like the attributes here, so files saved with the plain list still load.
    """

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.num_rows = len(rows)
        for i, row in enumerate(rows):
            setattr(self, f"container_{i}" if i else "container", row)
        self.built = True  # by the layer that holds it

    def rows(self):
        return [getattr(self, f"container_{i}" if i else "container") for i in range(self.num_rows)]


def _run_layer(layer, x, mask, training):
    """Return the output (B, S, U) of a Keras RNN, in the order of its input, and final states."""
    if scope.current(scope.Export) or scope.current(scope.Decoding):
        states = cells.zero_states(layer.cell, ops.shape(x)[0])

        def step(x, states):
            return cells.step_cell(layer.cell, x, states)

        return recur(step, x, states, mask, backwards=layer.go_backwards)
    output, *states = layer(x, mask=mask, training=training)
    if layer.go_backwards:  # Keras returns it in the order of computation
        output = ops.flip(output, axis=1)
    return output, keras.tree.flatten(states)


@keras.saving.register_keras_serializable(package="keras_attention")
class Bridge(ProjectionOwner):
    """Makes a decoder's initial states from an encoder's final ones, with a dense layer for each.

    (Bahdanau et al., 2015, appendix A.2.2: `s_0 = tanh(W_s h_1)`.) If both have equally many
    states, each is made from its counterpart, otherwise each from all.

    Args:
        sizes: list of ints, those of the decoder's states: see `state_sizes`.
        activation: of the dense layers.

    Call arguments:
        states: list of (B, any size), an encoder's final states.

    Returns a list of (B, size).

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
