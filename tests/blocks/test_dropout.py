"""Dropout of tokens and of vectors, and the bag of words that joins another vector."""

import keras
import numpy as np
import pytest

import keras_attention as ka


def test_training_uses_one_path_for_each_example():
    layer = ka.blocks.PathDropout(seed=0)
    parts = [np.full((300, size), size, "float32") for size in (1, 2, 4)]
    seen = np.asarray(layer(parts, training=True))
    np.testing.assert_array_equal(np.asarray(layer(parts)), np.concatenate(parts, axis=-1))
    factors = np.stack([seen[:, 0], seen[:, 1], seen[:, 3]], axis=-1)
    assert ((factors > 0).sum(axis=1) == 1).all()
    assert ((factors > 0).mean(axis=0) > 0.25).all()  # each in about a third of the examples
    np.testing.assert_array_equal(factors.max(axis=0), [3, 6, 12])
    np.testing.assert_array_equal(seen[:, 1], seen[:, 2])  # a path is never dropped in part


@pytest.mark.parametrize("inputs", [[(2, 3)], [(2, 3), (2, 4, 3)]])
def test_path_dropout_refuses_other_inputs(inputs):
    with pytest.raises(ValueError, match=r"expected two tensors \(B, D\) or more"):
        ka.blocks.PathDropout()([np.zeros(shape) for shape in inputs])


def test_a_root_sum_is_divided_by_the_root_of_the_tokens():
    x = np.arange(24, dtype="float32").reshape(2, 4, 3)
    mask = np.array([[True, True, False, False], [True] * 4])
    pooled = np.asarray(ka.blocks.Pooling("root_sum")(x, mask=mask))
    np.testing.assert_allclose(pooled, [x[0, :2].sum(0) / 2**0.5, x[1].sum(0) / 2], rtol=1e-6)
    whole = np.asarray(ka.blocks.Pooling("root_sum")(x))
    np.testing.assert_allclose(whole, x.sum(1) / 2, rtol=1e-6)


def test_a_classifier_with_a_bag_of_words_gets_a_new_head():
    model = ka.models.text_classifier(
        20, 3, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, bag_of_words=5
    )
    assert model.get_layer("logits").kernel.shape == (8 + 5, 3)
    other = ka.models.replace_head(model, 4)
    assert other(np.array([[3, 4, 0]])).shape == (1, 4)
    assert other.get_layer("bag_embedding") is model.get_layer("bag_embedding")
    again = keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    ids = np.array([[3, 4, 0], [5, 1, 6]])
    np.testing.assert_allclose(np.asarray(again(ids)), np.asarray(model(ids)), rtol=1e-6)


def test_token_dropout_drops_its_share_but_no_padding():
    ids = np.where(np.random.default_rng(0).random((100, 100)) < 0.1, 0, 7)
    dropped = np.asarray(ka.blocks.TokenDropout(0.3, unknown_id=2, seed=1)(ids, training=True))
    assert np.array_equal(dropped == 0, ids == 0) and set(np.unique(dropped)) == {0, 2, 7}
    np.testing.assert_allclose((dropped == 2)[ids > 0].mean(), 0.3, atol=0.02)
