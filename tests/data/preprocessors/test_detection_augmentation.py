"""Random changes of pictures: boxes stay around their objects."""

import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka

SIDE = 40


def make_batch(count=64, seed=0):
    """Return black pictures with a white rectangle each, and its box."""
    generator = np.random.default_rng(seed)
    images = np.zeros((count, SIDE, SIDE, 1), "float32")
    boxes = np.zeros((count, 2, 4), "float32")
    labels = np.tile([1, -1], (count, 1)).astype("int32")
    for i in range(count):
        x, y, w, h = *generator.integers(0, 24, 2), *generator.integers(8, 16, 2)
        images[i, y : y + h, x : x + w] = 1
        boxes[i, 0] = np.array([x + w / 2, y + h / 2, w, h]) / SIDE
    return tf.constant(images), {"labels": tf.constant(labels), "boxes": tf.constant(boxes)}


def find_white(image):
    """Return the box of the white pixels, accurate to half a pixel."""
    rows, columns = np.where(image[..., 0] > 0.5)
    x0, y0, x1, y1 = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    return np.array([x0, y0, x1, y1]) / SIDE


def to_corners(box):
    return np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2])


@pytest.mark.parametrize("crop", [0.0, 0.4])
@pytest.mark.parametrize(("flip", "vertical_flip"), [(False, False), (True, False), (True, True)])
def test_boxes_move_with_their_objects(crop, flip, vertical_flip):
    images, labels = make_batch()
    augment = ka.data.detection_augmentation(flip, vertical_flip, crop, 0.0, 0.0)
    changed, moved = augment(images, labels, tf.constant([3, 4]))
    assert changed.shape == images.shape
    count = 0
    for image, box, label, before in zip(
        changed.numpy(),
        moved["boxes"].numpy(),
        moved["labels"].numpy(),
        labels["boxes"],
        strict=True,
    ):
        assert label[1] == -1 and not box[1].any()
        if label[0] == 1:
            count += 1
            np.testing.assert_allclose(to_corners(box[0]), find_white(image), atol=0.03)
        else:
            seen = (image > 0.5).sum() / SIDE**2
            assert seen < 0.36 * np.prod(before[0, 2:]) / 0.6**2  # little of it is left
    assert count == 64 if crop == 0 else count > 40
    same = [np.array_equal(a, b) for a, b in zip(changed.numpy(), images.numpy(), strict=True)]
    shares = {(False, False): (1, 1), (True, False): (0.3, 0.7), (True, True): (0.1, 0.45)}
    low, high = shares[flip, vertical_flip] if crop == 0 else (0, 0.1)
    assert low <= np.mean(same) <= high


def test_brightness_and_contrast_move_nothing_and_stay_in_range():
    images, labels = make_batch(8)
    augment = ka.data.detection_augmentation(False, False, 0.0, brightness=0.5, contrast=0.5)
    changed, moved = augment(images * 0.5 + 0.25, labels, tf.constant([1, 2]))
    assert 0 <= changed.numpy().min() and changed.numpy().max() <= 1
    assert np.ptp(changed.numpy().mean((1, 2, 3))) > 0.1
    np.testing.assert_allclose(moved["boxes"], labels["boxes"], atol=1e-6)


@pytest.mark.parametrize("name", ["crop", "brightness", "contrast"])
def test_numbers_have_bounds(name):
    with pytest.raises(ValueError, match=f"{name}=1.5: expected a number from 0 to below 1"):
        ka.data.detection_augmentation(**{name: 1.5})
