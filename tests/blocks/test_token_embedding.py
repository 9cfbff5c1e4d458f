"""Logits by token embeddings, and tables that embeddings share."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.blocks import token_embedding
from keras_attention.blocks.token_embedding import inner_products
from keras_attention.core import scope
from tests import gradients

random = np.random.default_rng(0)
V, D = 11, 6
IDS = np.array([[3, 10, 0], [7, 1, 2]], "int32")
X = random.normal(size=(2, 3, D)).astype("float32")


def drawn(layer):
    layer(IDS)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def test_logits_by_definition():
    layer = drawn(ka.blocks.TokenEmbedding(V, D, logit_bias=True, logit_scale=0.3, scale=True))
    table, bias = (np.asarray(w) for w in (layer.table.embeddings, layer.bias))
    expected = [[[0.3 * (x @ row) for row in table] + bias for x in xs] for xs in X]
    np.testing.assert_allclose(layer(X, reverse=True), expected, atol=1e-5)


def test_logits_are_capped_after_their_bias():
    layer = drawn(ka.blocks.TokenEmbedding(V, D, logit_bias=True, logit_soft_cap=1.7))
    table, bias = (np.asarray(w) for w in (layer.table.embeddings, layer.bias))
    expected = [[1.7 * np.tanh((table @ x + bias) / 1.7) for x in xs] for xs in X]
    np.testing.assert_allclose(layer(X, reverse=True), expected, atol=1e-5)
    again = ka.blocks.TokenEmbedding.from_config(layer.get_config())
    assert again.logit_soft_cap == 1.7
    with pytest.raises(ValueError, match="logit_soft_cap=0"):
        ka.blocks.TokenEmbedding(V, D, logit_soft_cap=0)


def test_logits_are_float32_in_mixed_precision():
    layer = drawn(ka.blocks.TokenEmbedding(V, D, dtype="mixed_bfloat16"))
    logits = layer(X, reverse=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    exact = X @ np.asarray(layer.table.embeddings).T
    np.testing.assert_allclose(logits, exact, atol=0.1)


def test_gradients_of_input_and_output_reach_the_table():
    layer = drawn(ka.blocks.TokenEmbedding(V, D))
    table = layer.table.embeddings
    before = np.asarray(table)

    def loss(tied):
        x = layer(IDS) if tied else ops.stop_gradient(layer(IDS))
        return ops.sum(ops.multiply(layer(x, reverse=True), UPSTREAM))

    output = [
        np.asarray(
            ops.convert_to_tensor(
                gradients.value_and_gradients(lambda tied=tied: loss(tied), variables=[table])[1][0]
            )
        )
        for tied in (False, True)
    ]
    of_output = np.einsum("btv,btd->vd", UPSTREAM, before[IDS])
    of_input = np.zeros((V, D))
    np.add.at(of_input, IDS, UPSTREAM @ before)
    np.testing.assert_allclose(output[0], of_output, atol=1e-4)
    np.testing.assert_allclose(output[1], of_output + of_input, atol=1e-4)


UPSTREAM = random.normal(size=(2, 3, V)).astype("float32")


@pytest.mark.parametrize("lacks_onednn", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_logits_of_one_row_equal_those_of_many(rows, lacks_onednn, monkeypatch):
    """Check the product for one row, with known and unknown batch sizes."""
    monkeypatch.setattr(token_embedding, "tensorflow_lacks_onednn", lambda: lacks_onednn)
    x, table = random.normal(size=(rows, D)), random.normal(size=(V, D))
    x, table = ops.array(x, "float32"), ops.array(table, "float32")
    for decoding in (None, scope.Decoding({})):
        if decoding is None:
            output = inner_products(x, table)
        else:
            with decoding:
                output = inner_products(x, table)
        np.testing.assert_allclose(output, np.asarray(x) @ np.asarray(table).T, atol=1e-5)


@pytest.mark.tensorflow
@pytest.mark.parametrize("lacks_onednn", [False, True])
def test_one_graph_for_one_row_and_many(lacks_onednn, monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(token_embedding, "tensorflow_lacks_onednn", lambda: lacks_onednn)
    layer = drawn(ka.blocks.TokenEmbedding(V, D))

    @tf.function(input_signature=[tf.TensorSpec((None, None, D))])
    def logits(x):
        with scope.Decoding({}):
            return layer(x, reverse=True)

    for x in (X, X[:1, :1], X[:, :1]):
        np.testing.assert_allclose(logits(x), layer(x, reverse=True), atol=1e-5)


def test_logits_have_the_mask_of_the_tokens():
    layer = drawn(ka.blocks.TokenEmbedding(V, D))
    logits = layer(layer(IDS), reverse=True)
    np.testing.assert_array_equal(logits._keras_mask, IDS != 0)


def two_with_one_table():
    """Build two embeddings with one table and their own positions, and logits of the second."""
    ids, x = keras.Input((None,), dtype="int32"), keras.Input((None, D))
    first = ka.blocks.TokenEmbedding(V, D, position=ka.positions.Learned(4), name="first")
    second = ka.blocks.TokenEmbedding(
        V, D, position=ka.positions.Learned(4), table=first.table, name="second"
    )
    y = first(ids) + second(ids)
    return keras.Model([ids, x], [y, second(x, reverse=True)])


def test_a_shared_table_is_saved_once(tmp_path):
    model = two_with_one_table()
    assert model.count_params() == V * D + 2 * 4 * D
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    expected = model([IDS, X])
    for _ in range(2):  # save the loaded model again
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
        assert model.get_layer("first").table is model.get_layer("second").table
        assert model.count_params() == V * D + 2 * 4 * D
        for ours, theirs in zip(model([IDS, X]), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = two_with_one_table()
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(fresh([IDS, X])[1], expected[1], atol=1e-6)


def test_a_tied_model_is_cloned_tied():
    ids = keras.Input((None,), dtype="int32")
    embedding = ka.blocks.TokenEmbedding(V, D)
    model = keras.Model(ids, embedding(embedding(ids), reverse=True))
    clone = keras.models.clone_model(model)
    assert clone.count_params() == V * D
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(IDS), model(IDS), atol=1e-6)


def test_a_table_of_another_size_is_refused():
    other = ka.blocks.TokenEmbedding(V + 1, D)
    with pytest.raises(ValueError, match=r"\(12, 6\).*\(11, 6\)"):
        ka.blocks.TokenEmbedding(V, D, table=other.table)
    with pytest.raises(ValueError, match="table='embeddings'"):
        ka.blocks.TokenEmbedding(V, D, table="embeddings")
