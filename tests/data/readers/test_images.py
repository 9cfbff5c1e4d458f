import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import ImageSplit


def batch_images(split, batch_size=32, **options):
    return ka.data.batches(ImageSplit.of(split), batch_size=batch_size, **options)


@pytest.fixture
def pixels():
    """Return images with the value i in image i."""
    return np.broadcast_to(np.arange(23, dtype="uint8")[:, None, None, None], (23, 5, 7, 3)).copy()


def test_dev_is_held_out_of_train_by_seed(pixels):
    numbers = np.arange(23)
    data = ImageSplit.collect((pixels, numbers), test=(pixels[:3], numbers[:3]), labels="abc")
    assert len(data.dev.labels) == 2 and len(data.train.labels) == 21
    assert sorted([*data.dev.labels, *data.train.labels]) == list(numbers)
    for split in (data.train, data.dev, data.test):
        np.testing.assert_array_equal(split.pixels[:, 0, 0, 0], split.labels)
    assert data.labels == ("a", "b", "c") and data.train.image_shape == (5, 7, 3)
    again = ImageSplit.collect((pixels, numbers), labels="abc", seed=0)  # as without a seed
    other = ImageSplit.collect((pixels, numbers), labels="abc", seed=1)
    assert list(again.dev.labels) == list(data.dev.labels) != list(other.dev.labels)
    assert repr(data) == "DataSet(ImageSplit: train=21, dev=2, test=3, 3 labels)"


def test_arrays_are_floats_from_0_to_1(pixels):
    images, labels = ImageSplit(pixels * 11, np.arange(23)).arrays(2, 5)
    assert images.dtype == np.float32 and labels.tolist() == [2, 3, 4]
    np.testing.assert_allclose(images[:, 1, 1, 1], np.array([22, 33, 44]) / 255, rtol=1e-6)
    floats = np.linspace(0, 1, 8 * 6).reshape(2, 4, 6, 1)
    images, _ = ImageSplit.collect((floats, [0, 1]), labels="ab", dev_fraction=0.5).dev.arrays()
    assert images.dtype == np.float32 and images.shape == (1, 4, 6, 1)


def test_batches_of_floats_keep_their_values():
    floats = np.linspace(0, 1, 2 * 4 * 6).reshape(2, 4, 6, 1)
    images, labels = next(iter(batch_images((floats, [1, 0]), 2)))
    assert images.dtype == "float32" and np.asarray(labels).tolist() == [1, 0]
    np.testing.assert_allclose(images, floats, rtol=1e-6)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches(pixels, shuffle):
    batches = batch_images((pixels, np.arange(23)), 5, shuffle=shuffle, seed=1)
    assert len(batches) == len(list(batches)) == 5
    seen = []
    for images, labels in batches:
        assert images.dtype == "float32" and labels.dtype == "int32"
        np.testing.assert_allclose(images[:, 2, 3, 1], np.asarray(labels) / 255, rtol=1e-6)
        seen.extend(np.asarray(labels))
    assert sorted(seen) == list(range(23)) and (seen == list(range(23))) == (not shuffle)


def test_shuffling_changes_by_epoch_and_repeats_by_seed(pixels):
    def epochs(seed):
        batches = batch_images((pixels, np.arange(23)), 23, shuffle=True, seed=seed)
        return [np.asarray(labels).tolist() for _ in range(2) for _, labels in batches]

    first, second = epochs(1)
    assert first != second and [first, second] == epochs(1) and first != epochs(2)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"rotation": 0.1}, {"zoom": 0.3}, {"brightness": 0.2}, {"contrast": 0.5}]
)
def test_augmentation_turns_zooms_and_lights(options):
    picture = np.zeros((32, 12, 12, 3), "float32")
    picture[:, 3:9, 3:9] = (0.4, 0.6, 0.8)
    augment = ka.data.image_augmentation(shift=0.0, seed=3, **options)
    (images,) = [
        np.asarray(x) for x, _ in batch_images((picture, np.zeros(32)), 32, augment=augment)
    ]
    assert images.shape == picture.shape and 0 <= images.min() <= images.max() <= 1
    changed = np.abs(images - picture).max(axis=(1, 2, 3))
    assert (changed > 1e-3).mean() > 0.9 and len(np.unique(changed)) > 20
    (same,) = [np.asarray(x) for x, _ in batch_images((picture, np.zeros(32)), 32)]
    np.testing.assert_array_equal(same, picture)


@pytest.mark.slow
def test_augmentation_moves_and_mirrors():
    picture = np.zeros((64, 6, 6, 1), "uint8")
    picture[:, 2:4, 1] = 255
    split = (picture, np.zeros(64))

    def epochs(flip):
        augment = ka.data.image_augmentation(shift=0.2, flip=flip, seed=3)
        batches = batch_images(split, 64, augment=augment)
        return [np.asarray(images) for _ in range(2) for images, _ in batches]

    first, second = epochs(flip=True)
    assert (first != second).any() and set(np.unique(first)) == {0.0, 1.0}
    np.testing.assert_array_equal(first, epochs(flip=True)[0])
    columns = {int(image.any((0, 2)).argmax()) for image in first if image.any()}
    assert columns == {0, 1, 2, 3, 4, 5}  # moved by up to one of six, then mirrored or not
    columns = {int(image.any((0, 2)).argmax()) for image in epochs(flip=False)[0] if image.any()}
    assert columns == {0, 1, 2}


def test_errors(pixels):
    with pytest.raises(ValueError, match=r"shape \(23, 5, 7\) and labels of shape \(23,\)"):
        batch_images((pixels[..., 0], np.arange(23)))
    with pytest.raises(ValueError, match=r"labels of shape \(22,\)"):
        batch_images((pixels, np.arange(22)))
    with pytest.raises(ValueError, match="float64 from 0.0 to 22.0: expected uint8, or floats"):
        ImageSplit.collect((pixels.astype(float), np.arange(23)), labels="abc")
    with pytest.raises(ValueError, match="A label is -1"):
        batch_images((pixels, np.arange(23) - 1))
    with pytest.raises(ValueError, match="There is no example"):
        batch_images((pixels[:0], []))


@pytest.mark.slow
def test_augmentation_does_not_depend_on_earlier_reads():
    """Prefetching draws random numbers for batches that an interrupted pass does not read."""
    pixels = np.random.default_rng(0).integers(0, 256, (36, 8, 8, 1)).astype("uint8")

    def epochs(count):
        augment = ka.data.image_augmentation(shift=0.3, flip=True, rotation=0.2)
        batches = batch_images((pixels, np.arange(36)), 4, augment=augment, seed=3)
        assert len(batches) == 9
        for _ in zip(range(count), batches, strict=False):
            pass
        return [np.concatenate([images for images, _ in batches]) for _ in range(2)]

    first, again = epochs(1), epochs(5)
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any()


@pytest.mark.parametrize("pixel", [np.nan, np.inf, 7.0, -1.0])
def test_pictures_out_of_range_are_refused(pixel):
    picture = np.zeros((4, 4, 1), "float32")
    picture[1, 2] = pixel
    preprocessor = ka.data.ImagePreprocessor(ka.data.Labels(("a", "b")), (4, 4), 1)
    with pytest.raises(ValueError, match="Pixels of float32 from .*expected uint8, or floats"):
        preprocessor([picture])


def test_a_dev_split_that_is_given_stays_as_it_is():
    pixels, numbers = np.zeros((20, 4, 4, 1), "uint8"), np.zeros(20, int)
    data = ImageSplit.collect((pixels, numbers), (pixels[:0], numbers[:0]), labels="a")
    assert (len(data.train), len(data.dev)) == (20, 0)
