"""Readers of COCO's JSON, Pascal VOC and TFDS, and their errors."""

import json
import re

import numpy as np
import pytest

import keras_attention as ka
from tests.data.readers.detection_files import HEIGHT, WIDTH, draw, write_coco, write_voc


def check_same(examples, expected):
    preprocessor = ka.data.DetectionPreprocessor(["dark", "light"], (HEIGHT, WIDTH))
    for example, drawn in zip(examples, expected, strict=True):
        assert example.boxes == drawn.boxes and example.labels == drawn.labels
        assert example.size == drawn.size
        pixels = preprocessor([example.image])[0]
        np.testing.assert_allclose(pixels * 255, drawn.image, atol=0.01)


def test_coco_reads_what_was_written(tmp_path):
    examples = draw(5, 0)
    path = write_coco(tmp_path, examples)
    for source in (path, tmp_path):
        data = ka.data.from_coco(test=source)
        check_same(data.test, examples)
        assert data.labels == ("dark", "light")  # by their ids
        assert [example.name for example in data.test] == [100, 101, 102, 103, 104]
    train = ka.data.from_coco(train=path, dev_fraction=0.4)
    assert (len(train.train), len(train.dev)) == (3, 2)
    data = ka.data.from_coco(test=path, labels=["light", "dark"])
    assert data.labels == ("light", "dark")


def test_coco_finds_pictures_in_the_folder_of_their_split(tmp_path):
    examples = draw(2, 0)
    path = write_coco(tmp_path / "val2017", examples)
    (tmp_path / "annotations").mkdir()
    path = path.rename(tmp_path / "annotations" / "instances_val2017.json")
    check_same(ka.data.from_coco(test=path).test, examples)
    path = path.rename(tmp_path / "x.json")
    check_same(ka.data.from_coco(test=path, images=tmp_path / "val2017").test, examples)
    with pytest.raises(ValueError, match=r"'0.png' is not in any of .*images="):
        ka.data.from_coco(test=path)


def test_crowds_and_boxes_without_area(tmp_path):
    example = draw(1, 0)[0]
    example = example._replace(
        boxes=((1.0, 1.0, 5.0, 5.0), (2.0, 2.0, 2.0, 9.0)), labels=("dark", "light"), crowds=(1, 0)
    )
    coco = ka.data.from_coco(test=write_coco(tmp_path / "coco", [example]))
    voc = ka.data.from_voc(test=write_voc(tmp_path / "voc", [example]))
    for data in (coco, voc):
        assert data.test[0].objects() == [("dark", (1.0, 1.0, 5.0, 5.0), True)]
        assert data.notes == ("1 boxes without area are left out",)


BROKEN = {
    "no list": (lambda c: c.pop("annotations"), "annotations is not there: expected a list"),
    "a word": (lambda c: c["annotations"][0].update(bbox="x"), r"annotations\[0\].bbox is 'x'"),
    "three": (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), "expected four numbers"),
    "category": (lambda c: c["annotations"][0].update(category_id=77), "an id of categories"),
    "image": (
        lambda c: c["annotations"][0].update(image_id=77),
        r"annotations\[0\].image_id is 77",
    ),
    "twice": (lambda c: c["images"][1].update(id=100), r"images\[1\].id is 100: expected another"),
    "two names": (lambda c: c["categories"][1].update(id=9), r"categories\[1\].id is 9: .*\[0\]"),
    "a crowd": (
        lambda c: c["annotations"][1].update(iscrowd="0"),
        r"\[1\].iscrowd is '0': .* false",
    ),
    "two crowds": (lambda c: c["annotations"][1].update(iscrowd=2), "iscrowd is 2: expected 0, 1"),
    "size": (lambda c: c["images"][0].update(width=0), r"images\[0\] is a list|from 1 to"),
    "no name": (
        lambda c: c["images"][0].pop("file_name"),
        "file_name is not there: expected a string",
    ),
    "gone": (lambda c: c["images"][0].update(file_name="z.png"), "'z.png' is not in any of"),
    "long": (lambda c: c["images"][0].update(file_name="z" * 5000), "is not in any of"),
    "none": (lambda c: c.update(images=[], annotations=[]), "has no image"),
    "truth": (lambda c: c["images"][0].update(id=True), "id is true: expected a whole number"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_coco_file_is_named(tmp_path, name):
    change, match = BROKEN[name]
    path = write_coco(tmp_path, draw(2, 0))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=match) as error:
        ka.data.from_coco(test=path)
    assert str(error.value).startswith(str(path))


def test_results_are_as_coco_takes_them(tmp_path):
    path = write_coco(tmp_path, draw(1, 0))
    objects = [[ka.tasks.FoundObject("light", 0.5, (1.0, 2.0, 4.0, 8.0))]]
    expected = [{"image_id": 100, "category_id": 9, "bbox": [1.0, 2.0, 3.0, 6.0], "score": 0.5}]
    assert ka.data.list_coco_results(objects, [100], path) == expected
    assert ka.data.list_coco_results(objects, [100], {"light": 9}) == expected
    with pytest.raises(ValueError, match="'light' has no category"):
        ka.data.list_coco_results(objects, [100], {"dark": 4})


def test_voc_reads_folders_and_lists(tmp_path):
    examples = draw(4, 1)
    folder = write_voc(tmp_path / "VOC", examples)
    names = folder / "ImageSets" / "Main" / "train.txt"
    names.write_text("000\n002  1\n\n")
    check_same(ka.data.from_voc(test=folder).test, examples)
    check_same(ka.data.from_voc(test=folder / "Annotations").test, examples)
    check_same(ka.data.from_voc(test=names).test, [examples[0], examples[2]])


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("<xmin>", "<xman>", "valid XML"),
        ("<width>32</width>", "", "has no size/width: expected a number there"),
        (">32<", ">wide<", "size/width is 'wide': expected a number"),
        (">32<", ">0<", "its size is 0 by 24 pixels: expected one or more"),
        ("<xmin>", "<xmin/><xmin>", "bndbox/xmin is '': expected a number"),
        ("<name>", "<name/><nome>", "valid XML"),
        ("<annotation>", '<!DOCTYPE a [<!ENTITY b "c">]><annotation>', "defines entities"),
        ("000.png", "gone.png", None),
    ],
)
def test_a_damaged_voc_file_is_named(tmp_path, old, new, match):
    folder = write_voc(tmp_path, draw(1, 1))
    path = folder / "Annotations" / "000.xml"
    path.write_text(path.read_text().replace(old, new, 1))
    if match is None:  # the picture that has the name of the XML file
        assert ka.data.from_voc(test=folder).test
        (folder / "JPEGImages" / "000.png").unlink()
        match = "its image 'gone.png' is neither in"
    with pytest.raises(ValueError, match=match) as error:
        ka.data.from_voc(test=folder)
    assert str(error.value).startswith(str(path))


def test_voc_without_sizes(tmp_path):
    examples = draw(2, 1)
    folder = write_voc(tmp_path, examples)
    for path in (folder / "Annotations").iterdir():
        path.write_text(re.sub("<size>.*</size>", "", path.read_text()))
    check_same(ka.data.from_voc(test=folder).test, examples)
    (folder / "JPEGImages" / "001.png").write_text("no picture")
    with pytest.raises(ValueError, match="001.png is damaged"):
        ka.data.from_voc(test=folder)


def test_from_voc_refuses_damaged_lists_and_missing_files(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"000\n\xe9t\xe9\n")
    with pytest.raises(ValueError, match="train.txt:2: not UTF-8: byte 0xe9 at position 4. Save"):
        ka.data.from_voc(test=tmp_path / "train.txt")
    (tmp_path / "train.txt").write_text("\n00\0\n")
    with pytest.raises(ValueError, match=r"train.txt:2: '00.x00.xml' is not in .*Annotations"):
        ka.data.from_voc(test=tmp_path / "train.txt")
    with pytest.raises(ValueError, match="names no XML file"):
        ka.data.from_voc(test=tmp_path)
    with pytest.raises(ValueError, match="expected a list .txt"):
        ka.data.from_voc(test=tmp_path / "x.doc")


@pytest.mark.parametrize("name", ["/etc/passwd", "../0.png", "a/../../0.png", "C:\\0.png"])
def test_coco_does_not_read_pictures_outside_of_its_folder(name, tmp_path):
    path = write_coco(tmp_path / "inside", draw(1, 0))
    (tmp_path / "0.png").write_bytes((tmp_path / "inside" / "0.png").read_bytes())
    content = json.loads(path.read_text())
    content["images"][0]["file_name"] = name
    path.write_text(json.dumps(content))
    for images in (None, tmp_path / "inside"):
        with pytest.raises(ValueError, match=r"file_name is .*expected a path within the folder"):
            ka.data.from_coco(test=path, images=images)


def test_lists_of_voc_read_nothing_outside(tmp_path):
    (tmp_path / "voc" / "ImageSets" / "Main").mkdir(parents=True)
    path = tmp_path / "voc" / "ImageSets" / "Main" / "test.txt"
    path.write_text("../../secret\n")
    with pytest.raises(ValueError, match=r"test.txt:1: '../../secret.xml' is outside of"):
        ka.data.from_voc(test=path)
