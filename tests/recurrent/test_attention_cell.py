"""The attention cell by the papers' equations, and in Keras's RNN."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.recurrent import AttentionCell, LocalWindow, RecurrentDecoder
from tests.recurrent import definition
from tests.recurrent.definition import A, B, D, E, S, T, U


def decoder(*args, inner=None, coverage_loss=0.0, **kwargs):
    cell = AttentionCell(inner or keras.layers.GRUCell(U), *args, **kwargs)
    layer = RecurrentDecoder(cell, coverage_loss)
    layer.build((None, None, D), (None, None, E))
    return definition.drawn(layer)


def assert_is(layer, expected):
    targets, encoded, mask = definition.tensors()
    outputs, weights = expected
    with ka.visualization.record_attention(layer) as maps:
        output = layer(targets, encoded, encoded_mask=mask)
    np.testing.assert_allclose(output, outputs, atol=5e-6)
    (seen,) = maps.values()
    np.testing.assert_allclose(seen[:, 0], weights, atol=5e-6)


def test_bahdanau_by_definition():
    layer = decoder()
    assert_is(layer, definition.bahdanau(layer.cell, *definition.tensors()))


@pytest.mark.parametrize("input_feeding", [True, False])
def test_luong_by_definition(input_feeding):
    layer = decoder("luong", attention_dim=A, input_feeding=input_feeding)
    assert_is(layer, definition.luong(layer.cell, *definition.tensors()))


def test_local_attention_by_definition():
    layer = decoder("luong", attention_dim=A, local=LocalWindow(2))
    focus = definition.local_window(layer.cell.local)
    outputs, weights = definition.luong(layer.cell, *definition.tensors(), focus)
    assert np.any(weights[:, :, :4] == 0)  # the windows hide some keys
    assert_is(layer, (outputs, weights))


def test_coverage_by_definition():
    layer = decoder(coverage=True, coverage_loss=0.5)
    targets, encoded, mask = definition.tensors()
    *expected, losses = definition.coverage(layer.cell, targets, encoded, mask)
    assert_is(layer, expected)
    tokens = np.arange(T) < np.array([[T], [3]])
    layer(targets, encoded, inputs_mask=tokens, encoded_mask=mask, training=True)
    (loss,) = layer.losses
    np.testing.assert_allclose(loss, 0.5 * losses[tokens].mean(), rtol=1e-5)
    layer(targets, encoded, training=False)
    assert not layer.losses


CELLS = {
    "gru": lambda **kwargs: keras.layers.GRUCell(U, **kwargs),
    "two lstm": lambda **kwargs: keras.layers.StackedRNNCells(
        [keras.layers.LSTMCell(5, **kwargs), keras.layers.LSTMCell(U, **kwargs)]
    ),
}


@pytest.mark.parametrize("inner", CELLS)
@pytest.mark.parametrize(
    "settings",
    [
        dict(score="dot", attention_dim=A),
        dict(attention="luong", score="concat", coverage=True),
    ],
    ids=["bahdanau", "luong"],
)
def test_keras_rnn_equals_the_decoder(inner, settings):
    targets, encoded, mask = definition.tensors()
    if settings["score"] == "dot":
        encoded = np.concatenate([encoded, encoded[:, :, :2]], axis=2)
    cell = AttentionCell(CELLS[inner](), encoded_dim=encoded.shape[2], **settings)
    rnn = keras.layers.RNN(cell, return_sequences=True)
    states = cell.initial_states(encoded, mask)
    rnn(targets, initial_state=states)
    definition.drawn(rnn)
    expected = RecurrentDecoder(cell)(targets, encoded, encoded_mask=mask)
    np.testing.assert_allclose(rnn(targets, initial_state=states), expected, atol=1e-6)


def test_a_functional_rnn_is_saved(tmp_path):
    targets, encoded = keras.Input((None, D)), keras.Input((None, E))
    cell = AttentionCell(keras.layers.GRUCell(U), "luong", encoded_dim=E)
    rnn = keras.layers.RNN(cell, return_sequences=True)
    outputs = rnn(targets, initial_state=cell.initial_states(encoded))
    model = keras.Model([targets, encoded], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = list(definition.tensors()[:2])
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)
    assert outputs.shape == (None, None, U)


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_the_first_source_sets_the_width(attention, tmp_path):
    targets, encoded, mask = definition.tensors()
    cell = AttentionCell(keras.layers.GRUCell(U), attention)
    rnn = keras.layers.RNN(cell, return_sequences=True)
    output = rnn(targets, initial_state=cell.initial_states(encoded, mask))
    assert cell.encoded_dim == E and cell.get_config()["encoded_dim"] == E
    expected = RecurrentDecoder(cell)(targets, encoded, encoded_mask=mask)
    np.testing.assert_allclose(output, expected, atol=1e-6)
    with pytest.raises(
        ValueError, match=rf"encoded_dim={E}, but the source is of shape \(2, 7, 3\)"
    ):
        cell.initial_states(np.zeros((2, 7, 3), "float32"))
    inputs = keras.Input((None, D)), keras.Input((None, E))
    cell = AttentionCell(keras.layers.GRUCell(U), attention)
    rnn = keras.layers.RNN(cell)
    model = keras.Model(inputs, rnn(inputs[0], initial_state=cell.initial_states(inputs[1])))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded([targets, encoded]), model([targets, encoded]), atol=1e-6)


@pytest.mark.parametrize("normalizer", ["sparsemax", ka.normalizers.Softmax(temperature=0.5)])
def test_takes_any_normalizer(normalizer):
    targets, encoded, mask = definition.tensors()
    layer = decoder(normalizer=normalizer)
    with ka.visualization.record_attention(layer) as maps:
        layer(targets, encoded, encoded_mask=mask)
    (weights,) = (np.asarray(x) for x in maps.values())
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert np.all(weights[1, :, :, 4:] == 0)


@pytest.mark.parametrize("score", ka.scores.NAMES)
def test_takes_any_score(score):
    targets, encoded, _ = definition.tensors()
    layer = RecurrentDecoder(AttentionCell(keras.layers.GRUCell(E), "luong", score))
    assert np.all(np.isfinite(keras.ops.convert_to_numpy(layer(targets, encoded))))


@pytest.mark.slow
@pytest.mark.parametrize("inner", CELLS)
def test_dropout_of_the_cell_is_equal_at_all_steps(inner):
    targets, encoded, mask = definition.tensors()
    targets = np.repeat(targets[:, :1], T, axis=1)
    layer = decoder(inner=CELLS[inner](dropout=0.5, recurrent_dropout=0.2, seed=1))
    calm = layer(targets, encoded, encoded_mask=mask)
    first = np.asarray(layer(targets, encoded, encoded_mask=mask, training=True))
    second = np.asarray(layer(targets, encoded, encoded_mask=mask, training=True))
    assert not np.allclose(first, calm, atol=1e-3) and not np.allclose(first, second, atol=1e-3)
    rnn = keras.layers.RNN(layer.cell, return_sequences=True)
    states = layer.cell.initial_states(encoded, mask)
    assert not np.allclose(rnn(targets, initial_state=states, training=True), calm, atol=1e-3)
    np.testing.assert_allclose(rnn(targets, initial_state=states), calm, atol=1e-5)


def test_attention_cell_refuses_invalid_options_and_missing_states():
    gru = keras.layers.GRUCell(4)
    with pytest.raises(ValueError, match="attention='loung'.*'bahdanau', 'luong'"):
        AttentionCell(gru, "loung")
    with pytest.raises(ValueError, match="input_feeding=False with attention='bahdanau'"):
        AttentionCell(gru, input_feeding=False)
    with pytest.raises(ValueError, match="cell='gru'.*GRUCell"):
        AttentionCell("gru")
    with pytest.raises(ValueError, match="local=3.*LocalWindow"):
        AttentionCell(gru, "luong", local=3)
    with pytest.raises(
        ValueError, match=r"cell.initial_states\(encoded, mask\), pass encoded_dim="
    ):
        AttentionCell(gru).build((None, 3))
    with pytest.raises(ValueError, match="the width of the source is unknown"):
        keras.layers.RNN(AttentionCell(gru))(np.zeros((B, T, D)))
    with pytest.raises(ValueError, match=r"encoded_dim=5, but the source is of shape \(2, 7, 11\)"):
        AttentionCell(gru, encoded_dim=5).build((B, D), (B, S, E))
    with pytest.raises(ValueError, match="initial_state=cell.initial_states"):
        keras.layers.RNN(AttentionCell(gru, encoded_dim=E))(np.zeros((B, T, D)))
