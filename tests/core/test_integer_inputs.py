"""Ids and positions given as floats are not rounded under mixed precision."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

IDS = np.array([[257.0, 2049.0, 29_999.0, 3.0]], "float32")
D = 8


def numbers(x):
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def assert_same(call, *floats):
    """Check that `call` gives equal outputs for floats and integers."""
    expected = numbers(call(*(x.astype("int32") for x in floats)))
    np.testing.assert_array_equal(numbers(call(*floats)), expected)
    tensors = [ops.convert_to_tensor(x) for x in floats]
    np.testing.assert_array_equal(numbers(call(*tensors)), expected)
    shifted = numbers(call(*(x.astype("int32") - 1 for x in floats)))
    assert np.abs(shifted - expected).max() > 1e-3  # the output depends on the ids


@pytest.fixture
def mixed():
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy("float32")


def test_embeddings_look_up_the_rows_of_large_ids(mixed):
    assert_same(ka.blocks.TokenEmbedding(30_000, D), IDS)
    assert_same(ka.blocks.CharacterEmbedding(30_000, D, filters=4), IDS[..., None].repeat(3, -1))
    words = ka.blocks.WordEmbedding(
        ka.blocks.TokenEmbedding(30_000, D), ka.blocks.CharacterEmbedding(30_000, D, filters=4), D
    )
    assert_same(words, IDS, IDS[..., None].repeat(3, -1))
    segments = ka.blocks.SegmentEmbedding(30_000)
    x = np.ones((1, 4, D), "float32")
    assert_same(lambda ids: segments(x, ids), IDS)


def test_a_reversed_embedding_takes_vectors(mixed):
    embed = ka.blocks.TokenEmbedding(20, D, embeddings_initializer="normal")
    embed(np.ones((1, 2)))
    x = np.random.default_rng(0).normal(size=(1, 2, D)).astype("float32")
    actual = numbers(embed(x, reverse=True))
    rows = numbers(ops.cast(embed.table.embeddings, "bfloat16"))
    np.testing.assert_allclose(actual, x @ rows.T, atol=0.05)


def test_positions_are_not_rounded(mixed):
    embed = ka.blocks.TokenEmbedding(20, D, position="sinusoidal")
    assert_same(lambda at: embed(np.ones((1, 4), "int32"), positions=at), IDS)
    assert_same(lambda at: embed(np.ones((1, 4), "int32"), at), IDS)
    x = np.random.default_rng(0).normal(size=(1, 4, D)).astype("float32")
    at = np.array([[257.0, 259.0, 511.0, 513.0]], "float32")
    attend = ka.attention.MultiHeadAttention(2, 4, position=ka.positions.ALiBi())
    keys = np.array([[250.0, 259.0, 300.0, 513.0]], "float32")

    def with_positions(query_positions):
        return attend(x, x, query_positions=query_positions, value_positions=keys)

    assert_same(with_positions, at)
    learned = ka.positions.Learned(600)
    assert_same(lambda at: learned(x, at), at)


def test_large_segment_ids_are_not_rounded(mixed):
    x = np.random.default_rng(0).normal(size=(1, 4, D)).astype("float32")
    documents = np.array([[257.0, 256.0, 257.0, 256.0]], "float32")
    attend = ka.attention.MultiHeadAttention(2, 4)
    block = ka.blocks.EncoderBlock(ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(9))
    for call in (lambda ids: attend(x, x, segment_ids=ids), lambda ids: block(x, segment_ids=ids)):
        expected = numbers(call(documents.astype("int32")))
        np.testing.assert_array_equal(numbers(call(documents)), expected)
        assert np.abs(expected - numbers(call(np.zeros_like(documents)))).max() > 1e-3


def test_a_model_may_have_float_inputs(mixed):
    inputs = keras.Input((None,), dtype="float32")
    embed = ka.blocks.TokenEmbedding(30_000, D)
    model = keras.Model(inputs, embed(inputs))
    np.testing.assert_array_equal(numbers(model(IDS)), numbers(embed(IDS.astype("int32"))))


def test_the_mask_of_ids_is_kept():
    ids = ops.convert_to_tensor(np.array([[5.0, 7.0, 0.0]], "float32"))
    embedded = ka.blocks.TokenEmbedding(20, D)(ids)
    mask = ka.core.keras_internals.get_mask(embedded)
    assert numbers(mask).tolist() == [[1, 1, 0]]
