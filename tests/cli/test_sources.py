"""The split of the digits."""

import numpy as np

from keras_attention.cli import sources


def test_parts_are_disjoint_complete_stratified_and_fixed():
    labels = np.repeat(np.arange(10), 180)
    parts = sources.split_by_class(labels, seed=0)
    together = np.concatenate(list(parts.values()))
    assert sorted(together) == list(range(1800))
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 1260,
        "dev": 180,
        "test": 360,
    }
    for part in parts.values():
        assert len(set(np.bincount(labels[part]))) == 1
    again = sources.split_by_class(labels, seed=0)
    assert all((parts[name] == again[name]).all() for name in parts)
    assert (sources.split_by_class(labels, seed=1)["test"] != parts["test"]).any()


def test_the_images_are_real_and_in_range():
    images = sources.load_digits()
    sizes = [len(split.labels) for split in (images.train, images.dev, images.test)]
    assert sum(sizes) == 1797 and abs(sizes[2] - 1797 / 5) < 5
    pixels = images.train.pixels
    assert images.train.image_shape == (8, 8, 1) and pixels.min() == 0.0 and pixels.max() == 1.0
    assert images.labels == tuple("0123456789")
