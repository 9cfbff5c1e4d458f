"""`head_statistics`, against sums over every query and key."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import keras_attention as ka


def draw_weights(shape):
    weights = np.random.default_rng(0).random(shape) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def test_numbers_equal_their_definitions():
    weights = draw_weights((2, 3, 4, 5))
    mask = np.array([[True] * 4, [True, True, False, False]])
    statistics = ka.visualization.head_statistics({"a": weights}, mask)
    assert [(each.layer, each.head) for each in statistics] == [("a", 0), ("a", 1), ("a", 2)]
    places = [(b, i) for b in range(2) for i in range(4) if mask[b, i]]
    for head, each in enumerate(statistics):
        rows = [weights[b, head, i] for b, i in places]
        entropy = np.mean([-sum(w * math.log(w) for w in row) for row in rows])
        distance = np.mean(
            [sum(w * abs(i - j) for j, w in enumerate(weights[b, head, i])) for b, i in places]
        )
        agreement = np.mean(
            [
                1 - jensenshannon(weights[b, head, i], weights[b, other, i], base=2) ** 2
                for b, i in places
                for other in range(3)
                if other != head
            ]
        )
        expected = (entropy, distance, agreement)
        np.testing.assert_allclose(each[2:], expected, atol=1e-12)


def test_queries_without_weights_do_not_count():
    weights = draw_weights((1, 2, 3, 3))
    weights[:, :, 2] = 0
    whole = ka.visualization.head_statistics({"a": weights})
    part = ka.visualization.head_statistics({"a": weights[:, :, :2]})
    np.testing.assert_allclose([each[2:] for each in whole], [each[2:] for each in part])


def test_one_head_agrees_with_none():
    (only,) = ka.visualization.head_statistics({"a": draw_weights((1, 1, 3, 3))})
    assert math.isnan(only.agreement)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"weights \(3, 3\) for 'a': expected \(B, N, T, S\)"):
        ka.visualization.head_statistics({"a": np.eye(3)})
    with pytest.raises(ValueError, match=r"shape \(2, 4\): expected \(B, T\) = \(1, 3\)"):
        ka.visualization.head_statistics({"a": draw_weights((1, 2, 3, 3))}, np.ones((2, 4)))
