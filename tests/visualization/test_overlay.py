"""Attention over images: places of patches, and the selected query."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.visualization.overlay import (
    infer_patch_grid,
    normalize_image,
    select_patch_weights,
)
from tests.visualization.pixels import Pixels

ORANGE = np.array([1.0, 0.25, 0.0])


@pytest.fixture
def image():
    """Return a black image, 8 × 12, that is white in its top right corner."""
    image = np.zeros((8, 12, 1), "float32")
    image[:2, 10:] = 1.0
    return image


def looking_at(row, column, grid=(4, 6), prefix=1):
    """Return weights (1, T, T). The first token attends to one patch, the others to themselves."""
    weights = np.eye(prefix + grid[0] * grid[1], dtype="float32")
    weights[0] = 0.0
    weights[0, prefix + row * grid[1] + column] = 1.0
    return weights[None]


@pytest.mark.parametrize("prefix", [1, 5])
def test_weights_lie_over_their_patch(image, prefix):
    weights = looking_at(3, 1, prefix=prefix)
    figure = ka.visualization.attention_map(weights, image=image, grid=(4, 6))
    picture, head, _ = figure.axes
    colour_at = Pixels(figure)
    assert (picture.get_title(), head.get_title()) == ("image", "head 0")
    np.testing.assert_allclose(colour_at(picture, 11, 1), [1, 1, 1], atol=0.02)
    np.testing.assert_allclose(colour_at(picture, 1, 7), [0, 0, 0], atol=0.02)
    np.testing.assert_allclose(colour_at(head, 3, 7), 0.9 * ORANGE, atol=0.03)
    np.testing.assert_allclose(colour_at(head, 3, 1), [0, 0, 0], atol=0.02)
    np.testing.assert_allclose(colour_at(head, 11, 1), [1, 1, 1], atol=0.02)
    assert head.get_xlim() == (0, 12) and head.get_ylim() == (8, 0)


def test_every_patch_has_its_own_place():
    image = np.zeros((4, 6))
    for row in range(2):
        for column in range(3):
            weights = looking_at(row, column, grid=(2, 3), prefix=1)
            figure = ka.visualization.attention_map(weights, image=image)
            heat = figure.axes[1].images[1].get_array()
            assert np.argwhere(heat > 0).tolist() == [[row, column]]


def test_heads_and_their_mean_share_one_scale(image):
    weights = np.concatenate([looking_at(0, 0), looking_at(2, 5)])
    figure = ka.visualization.attention_map(weights, image=image)
    *panels, bar = figure.axes
    assert [p.get_title() for p in panels] == ["image", "head 0", "head 1", "mean of heads"]
    mean = panels[-1].images[1]
    assert mean.get_array()[0, 0] == mean.get_array()[2, 5] == 0.5
    assert mean.get_clim() == (0, 1)
    assert bar.get_ylabel() == "attention weight"
    assert panels[-1].get_xlabel() == "column (pixels)"


def test_query_selects_class_token_mean_or_index():
    matrix = np.arange(25, dtype="float32").reshape(5, 5)
    np.testing.assert_array_equal(select_patch_weights(matrix, (2, 2)), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(
        select_patch_weights(matrix, (2, 2), query=4), [[21, 22], [23, 24]]
    )
    np.testing.assert_array_equal(
        select_patch_weights(matrix, (2, 2), query="mean"), [[13.5, 14.5], [15.5, 16.5]]
    )
    pooled = matrix[:4, :4]
    np.testing.assert_array_equal(select_patch_weights(pooled, (2, 2)), [[7.5, 8.5], [9.5, 10.5]])
    np.testing.assert_array_equal(select_patch_weights(pooled[2:3], (2, 2)), [[10, 11], [12, 13]])


@pytest.mark.parametrize(
    ("keys", "size", "grid"),
    [
        (16, (8, 8), (4, 4)),
        (17, (8, 8), (4, 4)),
        (21, (8, 8), (4, 4)),
        (197, (224, 224), (14, 14)),
        (51, (20, 40), (5, 10)),
    ],
)
def test_grid_has_the_proportions_of_the_image(keys, size, grid):
    assert infer_patch_grid(keys, size) == grid


@pytest.mark.slow
def test_takes_all_kinds_of_images():
    weights = looking_at(0, 0, grid=(2, 2))
    for shape in [(4, 4), (4, 4, 1), (4, 4, 3), (4, 4, 4), (1, 4, 4, 3)]:
        ka.visualization.attention_map(weights, image=np.full(shape, 0.5))
        ka.visualization.attention_map(weights, image=np.full(shape, 200, "uint8"))


def test_bytes_are_divided_by_255():
    shown = normalize_image(np.array([[0, 51], [204, 255]], "uint8"))
    np.testing.assert_allclose(shown, [[0.0, 0.2], [0.8, 1.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": np.zeros((8, 12, 2))}, r"image of shape \(8, 12, 2\)"),
        ({"image": np.full((8, 12), 255.0)}, "values from 255 to 255"),
        ({"grid": (9, 9)}, "81 patches, but there are 25 keys"),
        ({"query": 25}, "query=25: expected 'mean' or 0 to 24"),
        ({"image": np.zeros((31, 37))}, r"grid of patches of an image 31 × 37"),
        ({"tokens": ["a"]}, "tokens are for text"),
    ],
)
def test_errors(image, change, message):
    with pytest.raises(ValueError, match=message):
        ka.visualization.attention_map(**{"weights": looking_at(0, 0), "image": image, **change})


def test_gallery_pairs_images_and_attention(tmp_path):
    images = np.zeros((7, 4, 4, 1), "float32")
    weights = np.zeros((7, 2, 5, 5), "float32")
    for k in range(7):
        images[k, k % 4, 0] = 1.0
        weights[k, :, 0, 1 + k % 4] = 1.0
    titles = [f"number {k}" for k in range(7)]
    path = tmp_path / "gallery.png"
    figure = ka.visualization.attention_gallery(
        images, weights, titles, columns=3, title="digits", path=path
    )
    pictures, looks = figure.axes[::2], figure.axes[1::2]
    assert [axis.get_title() for axis in pictures] == titles
    for k in range(7):
        np.testing.assert_array_equal(pictures[k].images[0].get_array(), images[k, ..., 0])
        heat = looks[k].images[1].get_array().ravel()
        assert heat.argmax() == k % 4 and heat.max() == 1.0
    assert looks[0].get_position().y1 <= pictures[0].get_position().y0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("images", "weights", "titles", "message"),
    [
        (2, 3, None, "with the same B"),
        (2, 2, ["one"], "1 titles for 2 images"),
        (0, 0, None, "with the same B"),
    ],
)
def test_gallery_errors(images, weights, titles, message):
    with pytest.raises(ValueError, match=message):
        ka.visualization.attention_gallery(
            np.zeros((images, 4, 4)), np.zeros((weights, 1, 5, 5)), titles
        )
