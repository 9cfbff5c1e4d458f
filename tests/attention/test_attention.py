"""Attention without projections, against Keras's two."""

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
    """Keras's has no W_q and W_k: it is ours with identities there."""
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


def test_query_padding_gives_zeros_and_travels_on():
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
        ({"position": "sinusoidal"}, "is added to tokens, which attention does not see"),
    ],
    ids=str,
)
def test_refuses_what_it_could_not_do(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.attention.Attention(**arguments)
