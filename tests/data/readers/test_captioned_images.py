"""Pictures with texts: readers, batches, and objects written as text."""

import json
import types

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.readers import read_captions
from keras_attention.data.readers.coco import has_captions

NIGHT, DAY = np.zeros((8, 8, 3), "uint8"), np.full((8, 8, 3), 255, "uint8")


@pytest.fixture
def pictures(tmp_path):
    for name, pixels in (("night.png", NIGHT), ("day.png", DAY)):
        keras.utils.save_img(tmp_path / name, pixels, scale=False)
    return tmp_path


def write_coco(folder, **changes):
    content = {
        "images": [{"id": 1, "file_name": "night.png"}, {"id": 2, "file_name": "day.png"}],
        "annotations": [
            {"id": 7, "image_id": 1, "caption": "A dark night. "},
            {"id": 8, "image_id": 2, "caption": "Day"},
            {"id": 9, "image_id": 1, "caption": "No\nlight"},
        ],
    }
    path = folder / "captions.json"
    path.write_text(json.dumps(content | changes))
    return path


def test_captions_of_coco(pictures):
    night, day = ka.data.from_captions(test=write_coco(pictures)).test
    assert night.image == pictures / "night.png" and night.texts == ("A dark night.", "No light")
    assert day.texts == ("Day",)


def test_captions_of_coco_in_a_folder(pictures):
    write_coco(pictures).rename(pictures / "annotations.json")
    assert [x.texts[0] for x in ka.data.from_captions(test=pictures).test] == [
        "A dark night.",
        "Day",
    ]
    assert has_captions(pictures) and has_captions(pictures / "annotations.json")
    source = types.SimpleNamespace(
        files={"test": pictures}, image_size=None, reading={}, choose_column=lambda *names: "text"
    )
    assert len(read_captions(source).test) == 2
    (pictures / "annotations.json").write_text('{"annotations": [{"bbox": [1, 1, 1, 1]}]}')
    assert not has_captions(pictures) and not has_captions(pictures / "night.png")


@pytest.mark.parametrize(
    "name, lines",
    [
        ("captions.csv", "image,text\nnight.png,a dark night\nday.png,day\nnight.png,night\n"),
        ("captions.tsv", "image\ttext\nnight.png\ta dark night\nday.png\tday\nnight.png\tnight\n"),
    ],
)
def test_captions_of_tables(pictures, name, lines):
    (pictures / name).write_text(lines)
    examples = ka.data.from_captions(train=pictures / name, dev_fraction=0).train
    assert [example.texts for example in examples] == [("a dark night", "night"), ("day",)]
    (pictures / "there").mkdir()
    with pytest.raises(ValueError, match="the image .*there/night.png is missing.*images="):
        ka.data.from_captions(train=pictures / name, images=pictures / "there")
    with pytest.raises(ValueError, match="no column 'x'.*with text_column="):
        ka.data.from_captions(train=pictures / name, text_column="x")
    with pytest.raises(ValueError, match="no column 'x'.*Choose with image_column="):
        ka.data.from_captions(train=pictures / name, image_column="x")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"annotations": [{"image_id": 3, "caption": "x"}]}, r"image_id is 3: .*an id of images"),
        ({"annotations": [{"image_id": 1, "caption": " "}]}, r"caption is ' ': expected a text"),
        ({"annotations": [{"image_id": 1}]}, r"annotations\[0\].caption is not there: .*a string"),
        ({"annotations": []}, "has no caption"),
        (
            {"images": [{"id": 1, "file_name": "night.png"}, {"id": 1, "file_name": "day.png"}]},
            r"images\[1\].id is 1: expected another one, as images\[0\] has this",
        ),
        (
            {"images": [{"id": 1, "file_name": "gone.png"}]},
            "'gone.png' is not in any of",
        ),
    ],
)
def test_broken_files_are_named(pictures, changes, message):
    with pytest.raises(ValueError, match=f"captions.json.*{message}"):
        ka.data.from_captions(test=write_coco(pictures, **changes))


def test_invalid_captions_are_errors():
    with pytest.raises(ValueError, match="none of them empty"):
        ka.data.CaptionedImage.collect([(NIGHT, ("night", " "))])
    with pytest.raises(ValueError, match="captions.txt is not a file of captions"):
        ka.data.from_captions(train="captions.txt")
    with pytest.raises(ValueError, match="There is no example"):
        ka.data.batches([], None)


def test_every_text_of_a_picture_is_in_an_epoch():
    examples = [ka.data.CaptionedImage(NIGHT, ("a dark night", "night"))]
    examples += [ka.data.CaptionedImage(DAY, ("day",))] * 3
    words = ka.data.Words.build(["a dark night", "day"])
    preprocessor = ka.data.ImageTextPreprocessor(words, image_size=4)
    batches = ka.data.batches(examples, preprocessor, 2, shuffle=True, seed=1)
    assert len(batches) == 3
    for _ in range(2):
        seen = []
        for inputs, labels in batches:
            assert inputs["target_ids"].shape[1] == 4
            ids, labels = np.asarray(inputs["target_ids"]), np.asarray(labels)
            for image, target_ids, following in zip(
                np.asarray(inputs["images"]), ids, labels, strict=True
            ):
                count = int((following >= 0).sum())
                np.testing.assert_array_equal(target_ids[1:count], following[: count - 1])
                assert target_ids[0] == 2 and following[count - 1] == 3
                (text,) = preprocessor.texts([following[:count]])
                assert image.min() == image.max() == (text == "day")
                seen.append(text)
        assert sorted(seen) == ["a dark night", "day", "day", "day", "night"]


def make_boxes(boxes, labels, **kwargs):
    return ka.data.BoxedImage(
        np.zeros((40, 60, 3), "uint8"), boxes, labels, size=(40, 60), **kwargs
    )


def test_objects_become_text_and_come_back():
    random = np.random.default_rng(0)
    for bins in (10, 100, 1000):
        corners = np.sort(random.uniform(size=(5, 2, 2)), axis=1) * [60, 40]
        corners[:, 1] += [8, 5]  # wide and high enough for ten places
        boxes = [tuple(np.clip(one.ravel(), 0, [60, 40, 60, 40])) for one in corners]
        labels = ["a", "red cell", "a", "b", "red cell"]
        example = make_boxes(boxes, labels)
        for seed in (None, 3):
            text = ka.data.describe_objects(example, bins, seed=seed)
            objects = ka.data.find_objects(text, (40, 60), ("a", "b", "red cell"), bins)
            expected = sorted(zip(labels, boxes, strict=True), key=lambda x: (x[0], x[1]))
            objects = sorted(((x, box) for x, _, box in objects), key=lambda x: (x[0], x[1]))
            assert [x for x, _ in objects] == [x for x, _ in expected]
            for (_, one), (_, other) in zip(objects, expected, strict=True):
                np.testing.assert_allclose(one, other, atol=0.51 * 60 / (bins - 1))


def test_orders_and_crowds():
    example = make_boxes(
        [(0, 20, 9, 30), (30, 0, 40, 9), (1, 1, 5, 5)], list("abc"), crowds=(0, 0, 1)
    )
    assert [x.split()[-1] for x in [ka.data.describe_objects(example)]] == ["a"]  # from the top
    texts = {ka.data.describe_objects(example, seed=seed) for seed in range(9)}
    assert len(texts) == 2 and all("c" not in text for text in texts)
    assert ka.data.describe_objects(make_boxes([], [])) == ""
    with pytest.raises(ValueError, match="looks like a position"):
        ka.data.describe_objects(make_boxes([(0, 0, 9, 9)], ["<7>"]))
    boxes = ka.data.BoxedImage.collect([example] * 9, test=[example] * 9)
    data = ka.data.caption_objects(boxes)
    assert data.labels == ("a", "b", "c") and len({one.texts for one in data.train}) == 2
    assert {one.texts for one in data.test} == {(ka.data.describe_objects(example),)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "<1> <1> <50> a",
        "<1> <1> <50> <50>",
        "<1> <1> <50> <50> unknown",
        "<50> <1> <1> <50> a",
        "<1> <1> <1> <50> a",
        "<1> <1> <50> <50> <50> a",
        "\ufffd <1> <1> \ufffd <50> a",
    ],
)
def test_find_objects_skips_malformed_boxes_and_unknown_labels(text):
    assert ka.data.find_objects(text, (40, 60), ("a",)) == []
    whole = "<0> <0> <99> <99> a"
    for joined in (f"{text} a {whole}", f"{whole} {text}"):
        assert ("a", 1.0, (0.0, 0.0, 60.0, 40.0)) in ka.data.find_objects(joined, (40, 60), ("a",))


def test_classes_with_equal_words_are_errors():
    boxes = [make_boxes([(0, 0, 9, 9), (9, 9, 20, 20)], ["red cell", "red_cell"])] * 2
    with pytest.raises(ValueError, match="'red cell' and 'red_cell' are both written red_cell"):
        ka.data.describe_objects(boxes[0])
    data = ka.data.BoxedImage.collect(boxes)
    with pytest.raises(ValueError, match="are both written red_cell"):
        ka.data.caption_objects(data)


def test_pictures_without_objects_have_an_empty_text():
    data = ka.data.BoxedImage.collect([make_boxes([], []), make_boxes([(0, 0, 9, 9)], ["a"])])
    pictures = ka.data.caption_objects(data, bins=10)
    again = ka.data.CaptionedImage.collect(pictures.train + pictures.dev, dev_fraction=0)
    assert sorted(one.texts for one in again.train) == [("",), ("<0> <0> <2> <1> a",)]
    assert pictures.about["bins"] == 10 and again.train[0].size == (40, 60)
