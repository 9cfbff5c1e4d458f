"""Grouped heads, masks and lengths that tests of several backends call `attend` with."""

import numpy as np
from keras import ops

import keras_attention as ka

B, T, N, K, H = 3, 80, 4, 2, 16
CAUSAL, WINDOW = ka.masks.Causal(), ka.masks.Causal() & ka.masks.Window(8)
LENGTHS = np.array([T, 17, 0], "int32")


def attend(lengths=None, same=True, mask=None, attention_mask=None, query_positions=None, **terms):
    """Return a function of query, key and value that calls `ka.attention.attend` with `terms`.

    `lengths` are of queries and keys: one tensor for both, or two equal ones unless `same`.
    """
    visible = {"attention_mask": attention_mask, "query_positions": query_positions}

    def function(query, key, value):
        if lengths is not None:
            keys = ops.convert_to_tensor(lengths)
            queries = keys if same else ops.minimum(keys, T)  # another tensor
            visible.update(key_lengths=keys, query_lengths=queries)
        visibility = ka.attention.Visibility(mask, **visible)
        return ka.attention.attend(
            query, key, value, mask=visibility, return_weights=False, **terms
        )

    return function


def draw_heads(dtype="float32"):
    """Return query (B, T, N, H), key and value (B, T, K, H)."""
    random = np.random.default_rng(0)
    return [ops.cast(random.normal(size=(B, T, n, H)), dtype) for n in (N, K, K)]
