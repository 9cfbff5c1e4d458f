"""The encoder compared with Keras's layers."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import scope
from keras_attention.recurrent import RecurrentEncoder
from tests.recurrent import definition

B, S, D, U = 2, 5, 3, 7
X = np.random.default_rng(0).normal(size=(B, S, D)).astype("float32")
RIGHT = np.arange(S) < np.array([[S], [3]])
LEFT = np.arange(S) >= np.array([[0], [2]])


def made(cell, **kwargs):
    encoder = RecurrentEncoder(cell, **kwargs)
    encoder.build((None, None, D))
    return definition.drawn(encoder)


def parts(encoder, x, mask):
    """Return the results of Keras's layers with the same weights."""
    states = []
    for layers in encoder._layers_of.rows():
        outputs = []
        for layer in layers:
            keras_layer = type(layer).from_config(layer.get_config())
            keras_layer(x)
            keras_layer.set_weights(layer.get_weights())
            output, *ends = keras_layer(x, mask=mask)
            output = np.asarray(output)
            outputs.append(np.flip(output, axis=1) if layer.go_backwards else output)
            states.append([np.asarray(end) for end in ends])
        x = np.concatenate(outputs, axis=2)
    return x, states


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell, num_layers, mask",
    [
        (keras.layers.LSTMCell, 1, RIGHT),
        (keras.layers.GRUCell, 2, LEFT),
        (keras.layers.GRUCell, 1, None),
    ],
    ids=["right", "left", "whole"],
)
def test_equals_layers_of_keras(cell, num_layers, mask):
    """Compare outputs at tokens and final states, for both loops."""
    encoder = made(cell(U), num_layers=num_layers)
    expected, ends = parts(encoder, X, mask)
    tokens = np.ones((B, S), bool) if mask is None else mask
    number = len(ends[0])
    for exporting in (False, True):
        with scope.Export() if exporting else scope.Scope():
            encoded, states = encoder(X, mask=mask)
        np.testing.assert_allclose(np.asarray(encoded)[tokens], expected[tokens], atol=1e-6)
        assert np.all(np.asarray(encoded)[~tokens] == 0)
        assert len(states) == number * num_layers
        for i, state in enumerate(states):
            forward, backward = ends[2 * (i // number)], ends[2 * (i // number) + 1]
            joined = np.concatenate([forward[i % number], backward[i % number]], axis=1)
            np.testing.assert_allclose(state, joined, atol=1e-6)


@pytest.mark.parametrize("exporting", [False, True])
def test_padding_changes_nothing(exporting):
    encoder = made(keras.layers.GRUCell(U))
    with scope.Export() if exporting else scope.Scope():
        encoded, states = encoder(X, mask=RIGHT)
        alone, ends = encoder(X[1:, :3])
    np.testing.assert_allclose(encoded[1:, :3], alone, atol=1e-6)
    np.testing.assert_allclose(states[0][1:], ends[0], atol=1e-6)


def test_takes_any_cell_in_one_direction():
    cell = keras.layers.StackedRNNCells([keras.layers.GRUCell(4), keras.layers.SimpleRNNCell(U)])
    encoder = made(cell, bidirectional=False)
    encoded, states = encoder(X)
    assert encoded.shape == (B, S, U) and [s.shape for s in states] == [(B, 4), (B, U)]
    with scope.Export():
        np.testing.assert_allclose(encoder(X)[0], encoded, atol=1e-6)
    np.testing.assert_allclose(states[1], encoded[:, -1], atol=1e-6)


def test_dropout_is_applied_between_layers():
    encoder = made(keras.layers.GRUCell(U), num_layers=2, dropout=0.5)
    assert not np.allclose(encoder(X, training=True)[0], encoder(X)[0], atol=1e-3)
    single = made(keras.layers.GRUCell(U), dropout=0.5)
    np.testing.assert_allclose(single(X, training=True)[0], single(X)[0], atol=1e-6)


def test_directions_and_layers_share_no_weights():
    encoder = RecurrentEncoder(keras.layers.GRUCell(U), num_layers=2)
    encoder.build((None, None, D))
    kernels = [w for w in encoder.weights if w.path.endswith("cell/kernel")]
    assert [k.shape for k in kernels] == [(D, 3 * U)] * 2 + [(2 * U, 3 * U)] * 2
    assert len({np.asarray(k).tobytes() for k in kernels}) == 4


def test_bridge_makes_the_states_of_the_decoder():
    _, states = made(keras.layers.LSTMCell(U))(X)
    bridge = ka.recurrent.Bridge([4, 6])
    first, second = bridge(states)
    kernel, bias = map(np.asarray, bridge.weights[:2])
    np.testing.assert_allclose(first, np.tanh(np.asarray(states[0]) @ kernel + bias), atol=1e-6)
    assert second.shape == (B, 6)
    (of_all,) = ka.recurrent.Bridge([4])(states)
    assert of_all.shape == (B, 4)


def test_encoder_refuses_unknown_cells_and_zero_layers():
    with pytest.raises(ValueError, match="num_layers=0"):
        RecurrentEncoder(keras.layers.GRUCell(3), num_layers=0)
    with pytest.raises(ValueError, match="cell=3"):
        RecurrentEncoder(3)
    with pytest.raises(ValueError, match="Unknown cell 'gur'. Known: gru, lstm, rnn"):
        ka.recurrent.get_cell("gur", 3)
