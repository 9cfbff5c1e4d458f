"""Attention without projections, against the two layers of Keras."""

import keras
import numpy as np
import pytest

import keras_attention as ka

B, T, S, D = 2, 5, 7, 11
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
KEY = random.normal(size=(B, S, D)).astype("float32")
MASKS = [np.ones((B, T), bool), np.arange(S) < np.array([[S], [S - 2]])]


@pytest.mark.parametrize("inputs", [[QUERY, VALUE], [QUERY, VALUE, KEY]], ids=["two", "three"])
@pytest.mark.parametrize("call", [{}, {"use_causal_mask": True}, {"mask": MASKS}], ids=str)
def test_equals_keras_attention(inputs, call):
    expected = keras.layers.Attention()(inputs, return_attention_scores=True, **call)
    ours = ka.attention.Attention()(inputs, return_attention_scores=True, **call)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_equals_keras_additive_attention():
    """Set W_q and W_k to the identity, because Keras's layer does not have them."""
    theirs = keras.layers.AdditiveAttention()
    theirs([QUERY, VALUE])
    scale = random.normal(size=D).astype("float32")
    theirs.set_weights([scale])
    ours = ka.attention.Attention(score="additive")
    ours([QUERY, VALUE])
    identity = np.eye(D, dtype="float32")[None]
    ours.set_weights([identity, identity, scale[None]])
    for a, b in zip(
        ours([QUERY, VALUE], return_attention_scores=True),
        theirs([QUERY, VALUE], return_attention_scores=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_query_padding_gives_zeros_and_stays_on_the_output():
    embed = keras.layers.Embedding(9, D, mask_zero=True)
    x = embed(np.array([[3, 4, 0], [5, 0, 0]]))
    output = ka.attention.Attention()([x, x])
    assert np.all(np.asarray(output)[0, 2] == 0) and np.all(np.asarray(output)[1, 1:] == 0)
    assert np.array_equal(output._keras_mask, [[True, True, False], [True, False, False]])


def test_refuses_a_single_tensor():
    with pytest.raises(ValueError, match=r"\[query, value\]"):
        ka.attention.Attention()(QUERY)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"score": None}, "attention needs a score"),
        ({"normalizer": None}, "attention needs a normalizer"),
        ({"position": "sinusoidal"}, "is added to tokens, which is the work of an embedding"),
    ],
    ids=str,
)
def test_refuses_missing_parts_and_positions_that_embed(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.attention.Attention(**arguments)


def test_more_axes_are_part_of_the_batch():
    """Treat each row of a grid as a sequence of its own, as in Keras."""
    query, value, key = (random.normal(size=(B, 3, 2, n, D)).astype("float32") for n in (T, S, S))
    inputs = [query, value, key]
    expected = keras.layers.Attention()(inputs, return_attention_scores=True, use_causal_mask=True)
    ours = ka.attention.Attention()(inputs, return_attention_scores=True, use_causal_mask=True)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    rows = [x.reshape(-1, *x.shape[3:]) for x in inputs]
    masks = [random.random(x.shape[:-1]) < 0.7 for x in (query, value)]
    layer = ka.attention.Attention(score="additive", position=ka.positions.Rotary(rotary_dim=10))
    output = layer(inputs, mask=masks)
    of_rows = layer(rows, mask=[x.reshape(-1, x.shape[-1]) for x in masks])
    np.testing.assert_allclose(np.reshape(output, of_rows.shape), of_rows, atol=1e-5)


def test_more_axes_in_a_model():
    query, value = keras.Input((None, None, D)), keras.Input((None, 7, D))
    output, weights = ka.attention.Attention()([query, value], return_attention_scores=True)
    assert output.shape == (None, None, None, D) and weights.shape == (None, None, None, 7)
    model = keras.Model([query, value], [output, weights])
    arrays = random.normal(size=(B, 3, T, D)), random.normal(size=(B, 3, S, D))
    output, weights = model([x.astype("float32") for x in arrays])
    assert output.shape == (B, 3, T, D) and weights.shape == (B, 3, T, S)


@pytest.mark.parametrize(
    "shapes", [[(T, D), (S, D)], [(B, T, D), (B, 3, S, D)], [(B, 3, T, D), (B, 2, S, D)]], ids=str
)
def test_other_axes_in_front_are_refused(shapes):
    with pytest.raises(ValueError, match=r"the same axes before the length"):
        ka.attention.Attention()([np.ones(shape, "float32") for shape in shapes])


@pytest.mark.parametrize("score", ka.scores.NAMES)
def test_whole_numbers_are_cast_to_floats(score):
    """Cast whole numbers, because as ints all weights below 1 would be 0."""
    whole = [random.integers(-2, 3, size=x.shape) for x in (QUERY, VALUE)]
    layer = ka.attention.Attention(score=score)
    expected = layer([x.astype("float32") for x in whole], return_attention_scores=True)
    outputs = layer(whole, return_attention_scores=True)
    for a, b in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    heads = [x[:, :, None] for x in whole]
    output, weights = ka.attention.attend(heads[0], heads[1], heads[1])
    floats = [x.astype("float32") for x in heads]
    for a, b in zip((output, weights), ka.attention.attend(*floats, floats[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    mixed, _ = ka.attention.attend(floats[0], floats[1], heads[1])
    np.testing.assert_array_equal(mixed, output)


def test_parts_can_be_passed_by_position():
    layer = ka.attention.Attention("dot", "sparsemax", "causal")
    assert layer.normalizer == ka.normalizers.get("sparsemax")
    assert layer.mask == ka.masks.Causal()
