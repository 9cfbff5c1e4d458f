"""Lengths hide padding on every backend, unless a layer changes the mask."""

import dataclasses

import numpy as np
from keras import ops

import keras_attention as ka
from tests.backends.attention_cases import LENGTHS, WINDOW, B, T, draw_heads


def test_lengths_alone_hide_padding_from_every_kernel():
    visibility = ka.attention.Visibility(WINDOW, query_lengths=LENGTHS, key_lengths=LENGTHS)
    dense, _ = ka.attention.attend(*draw_heads(), mask=visibility)
    for implementation in ("banded", "chunked"):
        actual = ka.attention.attend(
            *draw_heads(), mask=visibility, return_weights=False, implementation=implementation
        )
        np.testing.assert_allclose(
            ops.convert_to_numpy(actual), ops.convert_to_numpy(dense), atol=2e-6
        )
    assert np.all(ops.convert_to_numpy(dense)[2] == 0)


def test_a_layer_that_changes_the_mask_gives_up_the_lengths():
    class Hiding(ka.attention.MultiHeadAttention):
        def attend_heads(self, query, heads, equation, visibility, *how):
            first = ops.reshape(ops.arange(T) > 0, (1, 1, 1, T))
            visibility = dataclasses.replace(visibility, attention_mask=first)
            return super().attend_heads(query, heads, equation, visibility, *how)

    x = ops.convert_to_tensor(np.random.default_rng(0).normal(size=(B, T, 8)).astype("float32"))
    tokens = ops.convert_to_tensor(np.arange(T)[None] < LENGTHS[:, None])
    layer = Hiding(2, 4, padding="right")
    actual = layer(x, x, query_mask=tokens, value_mask=tokens)
    expected, weights = layer(
        x, x, query_mask=tokens, value_mask=tokens, return_attention_scores=True
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(actual), ops.convert_to_numpy(expected), atol=1e-5
    )
    assert np.all(ops.convert_to_numpy(weights)[..., 0] == 0)
