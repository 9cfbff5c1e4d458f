"""Pictures in class folders: read, resized, split, and refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.data import from_image_folder, read_image

pytestmark = pytest.mark.tensorflow
random = np.random.default_rng(0)


def save(path, picture):
    """Save a picture (H, W, C), 0 to 255, in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keras.utils.save_img(path, picture, scale=False)
    return path


def make_folder(folder, counts, size=(6, 8), channels=3):
    """Save pictures of one value: 100 for each class, plus their number in it."""
    for c, (name, count) in enumerate(counts.items()):
        for k in range(count):
            save(folder / name / f"{k:02}.png", np.full((*size, channels), 100 * c + k))
    return folder


def values(split):
    return split.pixels[:, 0, 0, 0].tolist()


def test_a_folder_is_split_by_class(tmp_path):
    folder = make_folder(tmp_path, {"10": 20, "9": 10})
    data = from_image_folder(folder, seed=1, test_fraction=0.2)
    assert data.labels == ("9", "10") and data.train.image_shape == (6, 8, 1)
    for split, counts in ((data.train, (7, 14)), (data.dev, (1, 2)), (data.test, (2, 4))):
        assert np.bincount(split.labels).tolist() == list(counts)
        assert split.pixels.dtype == np.uint8 and split.labels.dtype == np.int32
        np.testing.assert_array_equal(np.array(values(split)) >= 100, split.labels == 0)
    assert len({*values(data.train), *values(data.dev), *values(data.test)}) == 30
    again, other = (from_image_folder(folder, seed=s, test_fraction=0.2) for s in (1, 2))
    assert values(data.test) == values(again.test) != values(other.test)
    note = "split by class with the seed 1: 20 % for testing, 10 % for choosing the epoch, the oth"
    assert data.notes[0].startswith(note) and len(data.notes) == 1


def test_folders_of_parts(tmp_path):
    train, test = (make_folder(tmp_path / part, {"a": 5, "b": 5}) for part in ("train", "test"))
    data = from_image_folder([train, train], dev=train, test=test)
    sizes = [len(split.labels) for split in (data.train, data.dev, data.test)]
    assert sizes == [20, 10, 10] and data.notes == ()
    data = from_image_folder(train, test=test, dev_fraction=0.4)
    sizes = [len(split.labels) for split in (data.train, data.dev, data.test)]
    assert sizes == [6, 4, 10] and "testing" not in data.notes[0]
    assert len(from_image_folder(train, dev=test).test.labels) == 0
    data = from_image_folder(train, dev=test, test_fraction=0.4)
    sizes = [len(split.labels) for split in (data.train, data.dev, data.test)]
    assert sizes == [6, 10, 4]
    data = from_image_folder(train, dev_fraction=0)
    assert len(data.train.labels) == 10 and len(data.dev.labels) == 0
    assert len(from_image_folder(test=test).test.labels) == 10


def test_labels_of_a_model_define_the_ids(tmp_path):
    folder = make_folder(tmp_path, {"b": 2})
    data = from_image_folder(test=folder, labels=["c", "b", "a"])
    assert data.labels == ("c", "b", "a") and data.test.labels.tolist() == [1, 1]
    with pytest.raises(ValueError, match="test has the class 'b', which is not among the labels"):
        from_image_folder(test=folder, labels=["a", "c"])


@pytest.mark.parametrize("suffix", ["png", "jpg", "JPEG", "gif", "bmp", "webp"])
def test_formats(tmp_path, suffix):
    picture = np.kron(random.integers(0, 256, (2, 3, 3)), np.ones((16, 16, 1)))
    for name in "ab":
        for k in range(3):
            path = tmp_path / name / f"deep/{k}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = "jpeg" if suffix == "jpg" else suffix.lower()
            keras.utils.save_img(path, picture, file_format=kind, scale=False)
    data = from_image_folder(tmp_path)
    assert data.train.image_shape == (32, 48, 3)
    # JPEG and WebP lose colours where they change, and GIF has 256 of them.
    centers = data.train.pixels[0, 8::16, 8::16].astype(int)
    assert np.abs(centers - picture[8::16, 8::16]).max() <= (0 if suffix in ("png", "bmp") else 12)


def test_resized_as_pillow_does(tmp_path):
    from PIL import Image

    picture = random.integers(0, 256, (40, 60, 3), dtype="uint8")
    for name in "ab":
        for k in range(3):
            save(tmp_path / name / f"{k}.png", picture)
    save(tmp_path / "a" / "small.png", picture[:7, :5])
    data = from_image_folder(tmp_path, image_size=(10, 16))
    expected = Image.fromarray(picture).resize((16, 10), Image.Resampling.BILINEAR)
    large = [k for k in range(len(data.train.labels)) if data.train.labels[k] == 1]
    actual = data.train.pixels[large[0]].astype(int)
    assert np.abs(actual - np.asarray(expected, int)).max() <= 2
    assert data.notes[1] == "images are resized to 10 x 16 pixels, stretched where need be"
    one = read_image(tmp_path / "b" / "0.png", (10, 16))
    np.testing.assert_array_equal(np.rint(one * 255), actual)
    assert read_image(tmp_path / "a" / "small.png").shape == (7, 5, 3)


def test_grey_and_colour(tmp_path):
    make_folder(tmp_path, {"a": 4, "b": 4}, channels=1)
    assert from_image_folder(tmp_path).train.image_shape == (6, 8, 1)
    assert from_image_folder(tmp_path, color_mode="rgb").train.image_shape == (6, 8, 3)
    save(tmp_path / "a" / "red.png", np.full((6, 8, 3), (255, 0, 0)))
    assert from_image_folder(tmp_path).train.image_shape == (6, 8, 3)
    data = from_image_folder(tmp_path, color_mode="grayscale", dev_fraction=0)
    assert data.train.image_shape == (6, 8, 1) and values(data.train)[4] == 76  # 0.299 of red
    save(tmp_path / "glass.png", np.full((6, 8, 4), (10, 20, 30, 0)))
    np.testing.assert_allclose(read_image(tmp_path / "glass.png")[0, 0] * 255, [10, 20, 30])


def test_other_files_are_left_out(tmp_path):
    make_folder(tmp_path, {"a": 4, "b": 4})
    for name in ("notes.txt", "a/.DS_Store", "a/._00.png", "a/Thumbs.db", ".cache/x.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert from_image_folder(tmp_path).labels == ("a", "b")


def broken(tmp_path, name, content=b"x"):
    make_folder(tmp_path, {"a": 4, "b": 4})
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    return tmp_path


def half(tmp_path):
    path = save(tmp_path / "whole.jpg", random.integers(0, 256, (40, 40, 3)))
    content = path.read_bytes()
    path.unlink()
    return broken(tmp_path, "b/half.jpg", content[: len(content) // 2])


def odd(tmp_path):
    save(tmp_path / "b" / "odd.png", np.zeros((3, 4, 3)))
    return make_folder(tmp_path, {"a": 4, "b": 4})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "nowhere", "nowhere is missing: expected a folder of class folders"),
        (lambda p: broken(p, "x") / "x", "x is a file: expected a folder"),
        (lambda p: make_folder(p, {"a": 3}) / "a", "a has no class folder, but 3 images: expect"),
        (lambda p: p, "has no class folder: expected a folder for each class in it"),
        (lambda p: make_folder(p, {"a": 9}), "Found one class, a: expected"),
        (lambda p: broken(p, "c/a.txt"), r"c has no image \(.png, .jpg.*: add some, or remove"),
        (lambda p: broken(p, "b/x.png"), "b/x.png is damaged or not an image: expected PNG, JPG"),
        (lambda p: broken(p, "b/x.png", b""), "b/x.png is damaged"),
        (half, "b/half.jpg is damaged or not an image"),
        (lambda p: broken(p, "b/x.HEIC"), "b/x.HEIC is of an unsupported kind: convert it to"),
        (
            odd,
            r"odd.png has 3x4 pixels .*00.png has 6x8: .* such as image_size=64\. To leave",
        ),
        (
            lambda p: make_folder(p, {"a": 9, "b": 1}),
            "The class 'b' has 1 images, too few for ",
        ),
        (
            lambda p: make_folder(p, {"train/a": 3, "train/b": 3, "test/a": 3}),
            "has the folders test, train with class folders in them: give each .*/test'\\.",
        ),
    ],
)
def test_folders_that_are_refused(tmp_path, make, message):
    with pytest.raises(ValueError, match=message):
        from_image_folder(make(tmp_path))


def test_classes_must_be_the_same(tmp_path):
    train = make_folder(tmp_path / "train", {"a": 5, "b": 5})
    for counts, part in (({"a": 2}, "dev"), ({"a": 2, "b": 2, "c": 1}, "train")):
        other = make_folder(tmp_path / f"other{len(counts)}", counts)
        with pytest.raises(ValueError, match=f"The folder for {part} lacks the class"):
            from_image_folder(train, dev=other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(image_size=0), r"from_image_folder\(image_size=0\)"),
        (dict(image_size=(8, 8, 3)), "height, width"),
        (dict(color_mode="gray"), "color_mode='gray': expected one of .*'grayscale'"),
        (dict(dev_fraction=1), "dev_fraction=1: expected a number from 0 to below 1"),
        (dict(test_fraction=0.6, dev_fraction=0.4), "leave no training part"),
        (dict(image_size=100_000), "do not fit into memory: give a smaller image_size="),
    ],
)
def test_invalid_options_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        from_image_folder(make_folder(tmp_path, {"a": 4, "b": 4}), **options)
    with pytest.raises(ValueError, match="No file given"):
        from_image_folder()


def test_sign_digits(data_root, tmp_path):
    import zipfile

    with zipfile.ZipFile(data_root / "images-sign-digits" / "sign_digits.zip") as archive:
        names = [name for name in archive.namelist() if name.split("/")[1] in ("0", "1")]
        archive.extractall(tmp_path, names)
    data = ka.data.from_image_folder(tmp_path / "Dataset", image_size=48, test_fraction=0.2)
    assert data.labels == ("0", "1") and data.train.image_shape == (48, 48, 3)
    for split, count in ((data.train, 70), (data.dev, 10), (data.test, 20)):
        assert np.bincount(split.labels).tolist() == [count] * 2


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos3", "nearest"])
@pytest.mark.parametrize("size", [(5, 7), (13, 40), (17, 23)])
def test_pictures_are_resized_as_tensorflow_does_it(interpolation, size):
    picture = np.random.rand(17, 23, 3).astype("float32")
    expected = tf.image.resize(picture, size, interpolation, antialias=True)
    resized = ka.data.Resizing(interpolation).apply(picture, size)
    np.testing.assert_allclose(resized, expected, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_pictures_are_decoded_as_tensorflow_does_it(tmp_path, channels, dtype):
    pixels = np.random.randint(np.iinfo(dtype).max + 1, size=(6, 5, channels)).astype(dtype)
    content = tf.io.encode_png(pixels).numpy()
    (tmp_path / "x.png").write_bytes(content)
    expected = tf.io.decode_image(content, channels=3) / 255
    np.testing.assert_allclose(read_image(tmp_path / "x.png"), expected, atol=1e-6)
    expected = tf.image.rgb_to_grayscale(tf.cast(expected, "float32"))
    grey = read_image(tmp_path / "x.png", color_mode="grayscale")
    np.testing.assert_allclose(grey, expected, atol=1e-6)
