"""Pictures with boxes: checked, converted, and in batches."""

import numpy as np
import pytest

import keras_attention as ka
from tests.data.readers.detection_files import HEIGHT, LABELS, WIDTH, draw


def test_boxes_are_clipped_and_dropped_without_area():
    image = np.zeros((10, 20, 3), "uint8")
    boxes = [(-5, -5, 5, 5), (15, 5, 30, 30), (3, 3, 3, 8), (30, 0, 40, 5)]
    example = ka.data.BoxedImage(image, boxes, list("abcd"))
    data = ka.data.BoxedImage.collect([example], dev_fraction=0)
    assert data.train[0].boxes == ((0, 0, 5, 5), (15, 5, 20, 10))
    assert data.train[0].labels == ("a", "b") and data.labels == ("a", "b")
    assert data.notes == ("2 boxes without area are left out",)


@pytest.mark.parametrize(
    ("bounding_box_format", "box"),
    [
        ("xyxy", (4, 2, 10, 6)),
        ("yxyx", (2, 4, 6, 10)),
        ("xywh", (4, 2, 6, 4)),
        ("center_xywh", (7, 4, 6, 4)),
        ("rel_xyxy", (0.2, 0.2, 0.5, 0.6)),
        ("rel_yxyx", (0.2, 0.2, 0.6, 0.5)),
    ],
)
def test_the_formats_of_keras(bounding_box_format, box):
    example = ka.data.BoxedImage(np.zeros((10, 20, 3), "uint8"), [box], ["a"])
    options = {"bounding_box_format": bounding_box_format, "dev_fraction": 0}
    data = ka.data.BoxedImage.collect([example], **options)
    np.testing.assert_allclose(data.train[0].boxes, [(4, 2, 10, 6)], atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (dict(image="a.png"), "has no size"),
        (dict(boxes=[(1, 2, 3, 4)]), "1 boxes, 0 labels"),
        (dict(boxes=[(1, 2, 3, 4)], labels=["a"], crowds=(True, False)), "2 crowds"),
        (dict(boxes=[(1, 2, np.nan, 4)], labels=["a"]), "not finite"),
        (dict(boxes=[(1, 2, 3)], labels=["a"]), r"has the box \(1, 2, 3\): expected four numbers"),
        (dict(image="a.png", size=(0, 0)), "is 0 by 0 pixels"),
    ],
)
def test_errors_name_the_picture(settings, match):
    settings = {"image": np.zeros((5, 5, 3), "uint8"), "name": "blood", **settings}
    with pytest.raises(ValueError, match=f"The image blood.*{match}"):
        ka.data.BoxedImage.collect([ka.data.BoxedImage(**settings)])


def test_passed_labels_must_include_all():
    with pytest.raises(ValueError, match="'light' is not among labels: dark"):
        ka.data.BoxedImage.collect(draw(9, 0), labels=["dark"])


def test_batches_hold_shares_of_the_sides_and_no_crowds():
    one, two = draw(2, 3)[:2]
    two = two._replace(crowds=(True,) + (False,) * (len(two.boxes) - 1))
    preprocessor = ka.data.DetectionPreprocessor(LABELS, (12, 16))
    ((images, truth),) = ka.data.batches([one, two], preprocessor)
    assert images.shape == (2, 12, 16, 3)
    expected = one.image.reshape(12, 2, 16, 2, 3).mean((1, 3)) / 255
    np.testing.assert_allclose(images[0], expected, atol=0.15)  # with antialiasing
    for i, (example, first) in enumerate(((one, 0), (two, 1))):
        count = len(example.boxes) - first
        assert (truth["labels"][i, :count] >= 0).numpy().all()
        assert (truth["labels"][i, count:] == -1).numpy().all()
        for k in range(count):
            cx, cy, w, h = truth["boxes"][i, k].numpy() * [WIDTH, HEIGHT, WIDTH, HEIGHT]
            box = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
            np.testing.assert_allclose(box, example.boxes[first + k], atol=1e-4)
            assert LABELS[truth["labels"][i, k]] == example.labels[first + k]


@pytest.mark.slow
def test_order_and_augmentation_repeat_by_seed_and_change_by_epoch():
    preprocessor = ka.data.DetectionPreprocessor(LABELS, (12, 16))

    def make(seed):
        return ka.data.batches(
            draw(6, 0),
            preprocessor,
            4,
            shuffle=True,
            seed=seed,
            augment=ka.data.detection_augmentation(),
        )

    def read(batches):
        return np.concatenate([images.numpy() for images, _ in batches])

    first, again, other = make(1), make(1), make(2)
    assert len(first) == 2
    epochs = [read(first), read(first)]
    np.testing.assert_array_equal(epochs[0], read(again))
    np.testing.assert_array_equal(epochs[1], read(again))
    assert not np.array_equal(*epochs) and not np.array_equal(epochs[0], read(other))


def test_pictures_come_as_files_bytes_and_arrays(tmp_path):
    import keras

    image = draw(1, 0)[0].image
    keras.utils.save_img(tmp_path / "a.png", image, scale=False)
    preprocessor = ka.data.DetectionPreprocessor(LABELS, (12, 16))
    pictures = [tmp_path / "a.png", (tmp_path / "a.png").read_bytes(), image, image / 255]
    outputs = preprocessor(pictures)
    assert outputs.shape == (4, 12, 16, 3)
    np.testing.assert_allclose(outputs, np.repeat(outputs[:1], 4, axis=0), atol=1e-6)
    assert preprocessor.read(image)[1] == (HEIGHT, WIDTH)
    for wrong, match in (
        ("b.png", "file b.png is missing"),
        (b"no", "not an image"),
        (image[..., 0], "sha"),
    ):
        with pytest.raises(ValueError, match=match):
            preprocessor([wrong])
    with pytest.raises(ValueError, match="whole images"):
        ka.data.DetectionPreprocessor(LABELS, 8, resizing=ka.data.Resizing(size=16))


def test_unknown_label_is_an_error():
    preprocessor = ka.data.DetectionPreprocessor(["dark"], (12, 16))
    with pytest.raises(ValueError, match="'light' is not among the labels"):
        ka.data.batches(draw(9, 0), preprocessor)
