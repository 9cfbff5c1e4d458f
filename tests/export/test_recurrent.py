"""LiteRT files of Keras's recurrent layers, and the advice in errors."""

import re

import keras
import pytest

import keras_attention.export as export
from tests.grids import sampled

L = keras.layers

LAYERS = {
    "LSTM": lambda **options: L.LSTM(3, **options),
    "GRU": lambda **options: L.GRU(3, **options),
    "SimpleRNN": lambda **options: L.SimpleRNN(3, **options),
    "Bidirectional LSTM": lambda **options: L.Bidirectional(L.LSTM(3, **options)),
    "Bidirectional GRU": lambda **options: L.Bidirectional(L.GRU(3, **options)),
    "RNN": lambda **options: L.RNN(L.LSTMCell(3), **options),
    "StackedRNNCells": lambda **options: L.RNN([L.LSTMCell(3), L.GRUCell(4)], **options),
    "ConvLSTM1D": lambda **options: L.ConvLSTM1D(3, 3, padding="same", **options),
    "ConvLSTM2D": lambda **options: L.ConvLSTM2D(3, 3, padding="same", **options),
}
AXES = {"ConvLSTM1D": (6, 4), "ConvLSTM2D": (6, 6, 4)}


def make_model(name, length=None, **options):
    inputs = keras.Input((length, *AXES.get(name, (4,))))
    return keras.Model(inputs, LAYERS[name](return_sequences=True, **options)(inputs))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    sampled(
        [
            *("GRU", "Bidirectional LSTM", "ConvLSTM1D"),
            *("LSTM", "SimpleRNN", "Bidirectional GRU", "RNN", "StackedRNNCells"),
        ],
        3,
    ),
)
def test_the_advice_works(name, tmp_path):
    path = tmp_path / "model.tflite"
    with pytest.raises(export.ExportError, match="Pass batch_size=1 and leave sequence_length out"):
        export.to_litert(make_model(name), path)
    assert export.to_litert(make_model(name), path, batch_size=1).max_abs_error < 1e-5
    advice = "Leave sequence_length out, or build the layer with unroll=True on a keras.Input"
    with pytest.raises(export.ExportError, match=re.escape(advice)):
        export.to_litert(make_model(name), path, batch_size=1, sequence_length=5)
    report = export.to_litert(make_model(name, length=5, unroll=True), path)
    assert report.max_abs_error < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("mask_zero", [False, True])
@pytest.mark.parametrize("name", ["GRU", "Bidirectional LSTM"])
def test_classifiers_of_tokens_run_with_both_sizes_fixed(name, mask_zero, tmp_path):
    ids = keras.Input((None,), dtype="int32")
    x = LAYERS[name]()(L.Embedding(9, 4, mask_zero=mask_zero)(ids))
    model = keras.Model(ids, L.Dense(2)(x))
    for sizes in ({"batch_size": 1}, {"batch_size": 1, "sequence_length": 5}):
        assert export.to_litert(model, tmp_path / "m.tflite", **sizes).max_abs_error < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{}, {"batch_size": 1}])
def test_sequences_of_pictures_go_to_a_saved_model(sizes, tmp_path):
    with pytest.raises(export.ExportError, match="5 axes or more. Use to_saved_model"):
        export.to_litert(make_model("ConvLSTM2D"), tmp_path / "model.tflite", **sizes)
