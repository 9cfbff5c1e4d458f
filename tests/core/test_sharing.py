"""Copies of models keep shared layers."""

import numpy as np

import keras_attention as ka
from keras_attention.core import sharing


def make_model():
    return ka.models.seq2seq_transformer(
        9, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=4
    )


def test_a_copy_shares_the_same_layers():
    model = make_model()
    model.compile("sgd", "mse")
    copy = sharing.copy_model(model)
    encoder, decoder = (copy.get_layer(side) for side in ("encoder", "decoder"))
    assert encoder.get_layer("embedding").table is decoder.get_layer("embedding").table
    assert copy.count_params() == model.count_params() and not copy.compiled
    ids = {"source_ids": np.array([[3, 5]]), "target_ids": np.array([[2, 7, 8]])}
    np.testing.assert_array_equal(copy(ids), model(ids))
    copy.set_weights([np.zeros_like(w) for w in copy.get_weights()])
    assert any(w.any() for w in model.get_weights())
