"""Ragged tensors are refused with a clear error. Sparse tensors are read like dense ones."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.core import checks

ROWS = [[1, 2, 3], [4]]
MESSAGE = r"got a ragged tensor of shape \((2|None), None.*expected a dense one.*x\.to_tensor"


def make_ragged():
    return tf.ragged.constant(ROWS, dtype="int32")


@pytest.fixture(scope="module")
def model():
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    model = ka.models.sequence_labeler(20, 3, **size)
    model.compile("sgd", ka.training.MaskedSparseCategoricalCrossentropy(), run_eagerly=True)
    return model


def test_calls_refuse_ragged_ids(model):
    with pytest.raises(ValueError, match=MESSAGE):
        model(make_ragged())


@pytest.mark.parametrize("make", [ka.blocks.TokenEmbedding, ka.attention.MultiHeadAttention])
def test_layers_refuse_ragged_inputs(make):
    layer = make(20, 8)
    x = make_ragged()
    inputs = (x,) if make is ka.blocks.TokenEmbedding else (tf.gather(tf.ones((5, 8)), x),) * 2
    with pytest.raises(ValueError, match=f"{make.__name__} {MESSAGE}"):
        layer(*inputs)


@pytest.mark.slow
def test_fit_and_predict_refuse_ragged_ids(model):
    for traced in (False, True):
        model.run_eagerly = not traced
        with pytest.raises(ValueError, match=MESSAGE):
            model.predict(make_ragged(), verbose=0)
        with pytest.raises(ValueError, match=MESSAGE):
            model.fit(make_ragged(), make_ragged(), verbose=0)


def test_losses_and_metrics_refuse_ragged_labels():
    logits = np.zeros((2, 3, 4), "float32")
    with pytest.raises(ValueError, match=MESSAGE):
        ka.training.MaskedSparseCategoricalCrossentropy()(make_ragged(), logits)
    with pytest.raises(ValueError, match=MESSAGE):
        ka.training.MaskedSparseCategoricalAccuracy().update_state(make_ragged(), logits)


def test_ragged_inputs_are_refused_before_a_model_is_built():
    symbol = keras.Input((None,), dtype="int32", ragged=True)
    with pytest.raises(ValueError, match=MESSAGE):
        checks.refuse_ragged("TokenEmbedding", symbol)


def test_sparse_ids_are_as_dense_ones(model):
    dense = make_ragged().to_tensor(0)
    sparse = tf.sparse.from_dense(dense)
    np.testing.assert_allclose(model(sparse), model(dense), atol=1e-6)
