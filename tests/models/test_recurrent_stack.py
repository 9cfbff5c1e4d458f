"""Recurrent layers as encoders in builders of texts."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled

IDS = np.array([[4, 9, 7, 0], [5, 3, 8, 6]], "int32")


@pytest.mark.slow
@pytest.mark.parametrize("block, layer", [("lstm", keras.layers.LSTM), ("gru", keras.layers.GRU)])
def test_equals_bidirectional_layers_of_keras(block, layer):
    model = ka.models.text_encoder(
        30, hidden_dim=12, encoder=ka.models.RecurrentStack(2, 12, block, 0.1)
    )
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(30, 12, mask_zero=True)(ids)
    for _ in range(2):
        x = keras.layers.Bidirectional(layer(6, return_sequences=True))(x)
    expected = keras.Model(ids, x)
    expected.set_weights(model.get_weights())
    output, keras_output = model(IDS), expected(IDS)
    np.testing.assert_allclose(output[0, :3], keras_output[0, :3], atol=1e-6)
    np.testing.assert_allclose(output[1], keras_output[1], atol=1e-6)


def test_refuses_odd_widths_and_packed_documents():
    with pytest.raises(ValueError, match="hidden_dim=13.: expected an even number"):
        ka.models.RecurrentStack(2, 13)
    with pytest.raises(ValueError, match="Unknown cell 'transformer'"):
        ka.models.RecurrentStack(2, 12, "transformer")(keras.Input((None, 8)))
    x = keras.Input((None, 12))
    for stack in (ka.models.RecurrentStack(1, 12), ka.models.ConformerEncoder.of_size(1, 2, 12, 8)):
        with pytest.raises(ValueError, match=f"{type(stack).__name__} was called with segment_ids"):
            stack(x, segment_ids=keras.Input((None,), dtype="int32"))


def test_each_call_of_a_stack_makes_its_own_cells():
    stack = ka.models.RecurrentStack(1, 12, keras.layers.GRUCell(6))
    x = keras.Input((None, 8))
    first, second = (keras.Model(x, stack(x)) for _ in range(2))
    assert not {id(weight) for weight in first.weights} & {id(weight) for weight in second.weights}


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_files_only_need_built_in_operations(quantization, tmp_path):
    model = ka.models.sequence_labeler(
        30, 5, hidden_dim=64, encoder=ka.models.RecurrentStack(2, 64)
    )
    report = ka.export.to_litert(model, tmp_path / "model.tflite", quantization=quantization)
    assert report.max_abs_error < (1e-5 if quantization is None else 0.05)
