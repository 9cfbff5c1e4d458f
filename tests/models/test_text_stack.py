"""Recurrent layers in the place of blocks, in builders of texts."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=12, intermediate_dim=20)
IDS = np.array([[4, 9, 7, 0], [5, 3, 8, 6]], "int32")


@pytest.mark.slow
@pytest.mark.parametrize("block, layer", [("lstm", keras.layers.LSTM), ("gru", keras.layers.GRU)])
def test_they_are_those_of_keras_in_both_directions(block, layer):
    model = ka.models.text_encoder(30, block=block, **SIZE)
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(30, 12, mask_zero=True)(ids)
    for _ in range(2):
        x = keras.layers.Bidirectional(layer(6, return_sequences=True))(x)
    expected = keras.Model(ids, x)
    expected.set_weights(model.get_weights())
    found, wanted = model(IDS), expected(IDS)
    np.testing.assert_allclose(found[0, :3], wanted[0, :3], atol=1e-6)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-6)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"block": "rnn"}, "block='rnn': expected one of 'conformer', 'encoder', 'lstm', 'gru'"),
        ({"mask": "causal"}, "mask='causal' is of blocks that attend, and block='lstm' makes"),
        ({"remat": True}, "remat=True is of blocks that attend"),
        ({"hidden_dim": 13}, "hidden_dim=13 with block='lstm': expected an even"),
        ({"packed": True}, "block='lstm' joins neighbouring tokens by recurrence, and packed=True"),
    ],
)
def test_recurrent_text_encoder_refuses_unsupported_options(options, message):
    with pytest.raises(ValueError, match=message):
        ka.models.text_encoder(30, **{"block": "lstm", **SIZE, **options})


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_their_files_need_built_in_operations_alone(quantization, tmp_path):
    model = ka.models.sequence_labeler(30, 5, block="lstm", **{**SIZE, "hidden_dim": 64})
    report = ka.export.to_litert(model, tmp_path / "model.tflite", quantization=quantization)
    assert report.max_abs_error < (1e-5 if quantization is None else 0.05)
