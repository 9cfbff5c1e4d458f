"""A mask by its definition: a Python rule for each pair."""

import numpy as np
from keras import ops

from keras_attention import masks


def table(rule, query_positions, key_positions):
    """Return bool (T, S), or (B, T, S) for positions (B, T) and (B, S)."""
    if np.ndim(query_positions) == 2:
        rows = zip(query_positions, key_positions, strict=True)
        return np.stack([table(rule, i, j) for i, j in rows])
    return np.array([[bool(rule(int(i), int(j))) for j in key_positions] for i in query_positions])


def assert_is(mask, rule):
    """Compare `mask` with `rule(i, j)` for several lengths, an offset and a batch."""
    for i, j in ((range(5), range(7)), (range(11), range(3)), (range(6, 11), range(13))):
        allowed = mask.allows(np.array(i)[:, None], np.array(j)[None])
        assert ops.convert_to_numpy(allowed).dtype == bool
        expected = table(rule, i, j)
        np.testing.assert_array_equal(np.broadcast_to(allowed, expected.shape), expected)
    random = np.random.default_rng(0)
    i, j = random.integers(0, 23, (2, 5)), random.integers(0, 23, (2, 7))
    allowed = masks.materialize(mask, i, j)
    expected = table(rule, i, j)[:, None]  # (2, 1, 5, 7)
    assert (np.ones((2, 1, 5, 7), bool) if allowed is None else allowed).shape == expected.shape
    np.testing.assert_array_equal(True if allowed is None else allowed, expected)
