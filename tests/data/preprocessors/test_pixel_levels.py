"""Pictures as levels, and back, and as batches."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import ImageSplit, PixelLevelsPreprocessor


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("levels", [2, 17, 256])
def test_levels_and_back(channels, levels):
    preprocessor = PixelLevelsPreprocessor(["a", "b", "c"], (3, 5), channels, levels)
    drawn = np.random.default_rng(0).integers(levels, size=(7, 3, 5, channels))
    ids = preprocessor((drawn / (levels - 1)).astype("float32"), np.arange(7) % 3)
    assert ids.shape == (7, 1 + preprocessor.count) and preprocessor.grid == (3, 5 * channels)
    assert ids[:, 0].tolist() == [levels + k % 3 for k in range(7)]
    np.testing.assert_array_equal(ids[:, 1:].reshape(drawn.shape), drawn)  # row by row
    pictures = preprocessor.pictures(ids[:, 1:])
    np.testing.assert_array_equal(pictures, np.rint(255 * drawn / (levels - 1)).astype("uint8"))
    again = preprocessor(pictures, np.arange(7) % 3)
    np.testing.assert_array_equal(again, ids)
    assert ids.max() < preprocessor.vocabulary_size == levels + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_levels": 1}, "num_levels=1"),
        ({"num_levels": 257}, "num_levels=257"),
        ({"channels": 0}, "channels=0"),
        ({"image_size": 0}, "image_size=0"),
    ],
)
def test_preprocessor_refuses_invalid_settings_and_pictures(options, message):
    with pytest.raises(ValueError, match=message):
        PixelLevelsPreprocessor(**{"labels": ["a"], "image_size": 4} | options)
    with pytest.raises(ValueError, match=r"shape \(5, 4, 1\): expected \(4, 4, 1\)"):
        PixelLevelsPreprocessor(["a"], 4)(np.zeros((1, 5, 4, 1), "uint8"), [0])
    with pytest.raises(ValueError, match="There is no example"):
        empty = ImageSplit(np.zeros((0, 4, 4, 1), "uint8"), np.zeros(0, "int32"))
        ka.data.batches(empty, PixelLevelsPreprocessor(["a"], 4))


def test_labels_are_saved(tmp_path):
    PixelLevelsPreprocessor(["a", "b"], 4).save(tmp_path)
    assert (tmp_path / "labels.txt").read_text() == "a\nb\n"
    assert "labels.txt" in json.loads((tmp_path / "manifest.json").read_text())["files"]


def test_batches_come_in_another_order():
    pixels = (np.arange(6).reshape(6, 1, 1, 1) / 5).astype("float32") * np.ones((6, 2, 2, 1))
    split = ImageSplit(pixels.astype("float32"), np.zeros(6, "int32"))
    preprocessor = PixelLevelsPreprocessor(["a"], 2, num_levels=6)
    batches = ka.data.batches(split, preprocessor, 4, shuffle=True, seed=3)
    assert len(batches) == 2
    orders = []
    for _ in range(2):
        parts = list(batches.as_numpy_iterator())
        assert [len(ids) for ids, _ in parts] == [4, 2]
        ids, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
        assert (ids[:, 0] == 6).all()
        np.testing.assert_array_equal(ids[:, 1:], labels[:, :-1])
        orders.append(labels[:, 0].tolist())
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == list(range(6))
