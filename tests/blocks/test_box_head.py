"""`BoxHead` by its definition, and `ObjectQueries`."""

import numpy as np
import pytest

import keras_attention as ka

random = np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_initial_boxes_are_centered_in_cells():
    head = ka.blocks.BoxHead(8, points=(3, 2))
    boxes = np.array(head(random.normal(size=(2, 6, 5))))
    expected = [((c + 0.5) / 2, (r + 0.5) / 3) for r in range(3) for c in range(2)]
    np.testing.assert_allclose(boxes[..., :2], [expected] * 2, atol=1e-6)
    np.testing.assert_allclose(boxes[..., 2:], sigmoid(-2.0), atol=1e-6)


@pytest.mark.parametrize("points", [None, (1, 3), 3])
def test_boxes_by_definition(points):
    """Compare with sigmoid(W3 relu(W2 relu(W1 x)) + logits of the point)."""
    head = ka.blocks.BoxHead(8, points=points)
    x = random.normal(size=(2, 3, 5)).astype("float32")
    head(x)
    for weight in head.trainable_weights:
        weight.assign(random.normal(size=weight.shape, scale=0.5))
    dense = [np.array(w) for layer in (*head._inner, head._last) for w in layer.weights]
    hidden = np.maximum(x @ dense[0] + dense[1], 0)
    hidden = np.maximum(hidden @ dense[2] + dense[3], 0)
    expected = hidden @ dense[4] + dense[5] + [0, 0, -2, -2]
    if points == 3:
        expected[..., :2] += np.array(head.learned_points)
    elif points is not None:
        points = np.array([[1 / 6, 0.5], [0.5, 0.5], [5 / 6, 0.5]])
        expected[..., :2] += np.log(points / (1 - points))
    np.testing.assert_allclose(head(x), sigmoid(expected), atol=1e-5)


def test_learned_points_cover_the_image():
    head = ka.blocks.BoxHead(4, points=400)
    points = np.array(head(np.zeros((1, 400, 3))))[0, :, :2]
    assert points.min() >= 0 and points.max() <= 1
    counts, _, _ = np.histogram2d(*points.T, bins=2, range=[(0, 1), (0, 1)])
    assert counts.min() > 60


def test_refuses_another_number_of_vectors():
    with pytest.raises(ValueError, match=r"has 6 points, points=\(2, 3\).*called on 5 vectors"):
        ka.blocks.BoxHead(4, points=(2, 3))(np.zeros((1, 5, 4)))


def test_queries_are_the_same_for_every_image():
    queries = np.array(ka.blocks.ObjectQueries(5, 7)(np.zeros((3, 9, 2))))
    assert queries.shape == (3, 5, 7) and (queries == queries[:1]).all()
    assert np.unique(queries).size == 35
