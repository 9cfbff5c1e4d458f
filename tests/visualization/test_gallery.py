"""Many pictures at once."""

import numpy as np
import pytest

import keras_attention as ka


def test_pairs_of_picture_and_attention(tmp_path):
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
def test_errors(images, weights, titles, message):
    with pytest.raises(ValueError, match=message):
        ka.visualization.attention_gallery(
            np.zeros((images, 4, 4)), np.zeros((weights, 1, 5, 5)), titles
        )
