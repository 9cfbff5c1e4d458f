"""Grouped heads, masks and lengths that tests of several backends call `attend` with."""

import numpy as np
from keras import ops

import keras_attention as ka

B, T, N, K, H = 3, 80, 4, 2, 16
CAUSAL, WINDOW = ka.masks.Causal(), ka.masks.Causal() & ka.masks.Window(8)
LENGTHS = np.array([T, 17, 0], "int32")


def attend(lengths=None, same=True, **terms):
    """Return a function of query, key and value that calls `ka.attention.attend` with `terms`.

    `lengths` are of queries and keys: one tensor for both, or two equal ones unless `same`.
    """

    def function(query, key, value):
        given = {}
        if lengths is not None:
            keys = ops.convert_to_tensor(lengths)
            queries = keys if same else ops.minimum(keys, T)  # another tensor
            given = {"key_lengths": keys, "query_lengths": queries}
        return ka.attention.attend(query, key, value, return_weights=False, **terms, **given)

    return function


def draw_heads(dtype="float32"):
    """Return query (B, T, N, H), key and value (B, T, K, H)."""
    random = np.random.default_rng(0)
    return [ops.cast(random.normal(size=(B, T, n, H)), dtype) for n in (N, K, K)]
