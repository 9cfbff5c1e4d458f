"""Pictures with an EXIF orientation are turned upright wherever they are read, and so are boxes."""

import io
import json

import numpy as np
import pytest
from PIL import Image, ImageOps

import keras_attention as ka
from keras_attention.data.readers.image_folders import decode_picture
from keras_attention.data.readers.orientation import TAG, find_orientation, turn_box

pytestmark = pytest.mark.tensorflow
STORED = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype("uint8")
SIDES = np.zeros((16, 32, 3), "uint8")  # whose corner survives JPEG: white on the top left
SIDES[:8, :16] = 255


def encode(pixels, orientation, format="PNG"):
    picture, content = Image.fromarray(pixels), io.BytesIO()
    exif = Image.Exif()
    exif[TAG] = orientation
    picture.save(content, format, exif=exif, **({"lossless": True} if format == "WEBP" else {}))
    return content.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_pillow_turns_them(orientation):
    content = encode(STORED, orientation)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))))
    assert find_orientation(content) == orientation
    actual = decode_picture(content, "a.png")
    np.testing.assert_array_equal(np.rint(actual * 255), expected)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_turned_with_their_picture(orientation):
    pixels = np.zeros((4, 6, 3), "uint8")
    pixels[1:3, 4:5] = 255
    upright = decode_picture(encode(pixels, orientation), "a.png")
    x0, y0, x1, y1 = turn_box((4, 1, 5, 3), orientation, (4, 6))
    assert upright[y0:y1, x0:x1].min() == 1 and upright.sum() == 6


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_every_kind_of_file(format):
    upright = decode_picture(encode(SIDES, 6, format), "a")
    assert upright.shape == (32, 16, 3)
    assert upright[:14, 10:].min() > 0.9 and upright[:14, :6].max() < 0.1  # on the top right


def test_pictures_without_a_sound_orientation_are_as_they_are():
    for content in (encode(STORED, 0), encode(STORED, 9), encode(STORED, 6)[:40] + b"Exif", b"x"):
        assert find_orientation(content) == 1
    broken = encode(SIDES, 6, "JPEG").replace(b"Exif\0\0", b"Exif\0\0xx", 1)
    assert find_orientation(broken) == 1


def test_folders_and_preprocessors_turn_pictures(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.jpg").write_bytes(encode(SIDES, 8, "JPEG"))
    data = ka.data.from_image_folder(tmp_path, dev_fraction=0)
    assert data.train.pixels.shape == (2, 32, 16, 1)
    assert data.train.pixels[0, 18:, :6].min() > 230  # on the bottom left
    path = tmp_path / "a" / "0.jpg"
    seen = ka.data.ImagePreprocessor(["a", "b"], (32, 16), 1)([path])
    np.testing.assert_array_equal(np.rint(seen[0] * 255), data.train.pixels[0])
    read = ka.data.DetectionPreprocessor(["a"], (32, 16), 1).read
    for picture in (path, path.read_bytes()):
        pixels, size = read(picture)
        assert size == (32, 16)
        np.testing.assert_array_equal(pixels, seen[0])


def write_annotations(folder, size, box):
    (folder / "a.png").write_bytes(encode(STORED, 6))
    x0, y0, x1, y1 = box
    image = {"id": 1, "file_name": "a.png", "height": size[0], "width": size[1]}
    box = {"image_id": 1, "category_id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0]}
    content = {"images": [image], "categories": [{"id": 1, "name": "x"}], "annotations": [box]}
    (folder / "annotations.json").write_text(json.dumps(content))
    corners = zip(("xmin", "ymin", "xmax", "ymax"), (x0, y0, x1, y1), strict=True)
    corners = "".join(f"<{name}>{value}</{name}>" for name, value in corners)
    (folder / "a.xml").write_text(
        f"<annotation><size><height>{size[0]}</height><width>{size[1]}</width></size>"
        f"<object><name>x</name><bndbox>{corners}</bndbox></object></annotation>"
    )


@pytest.mark.parametrize(
    "size, box",
    [((6, 4), (1, 4, 3, 5)), ((4, 6), (4, 1, 5, 3)), ((12, 8), (2, 8, 6, 10))],
    ids=["of the upright picture", "of the stored picture", "of another size"],
)
def test_boxes_are_in_upright_pixels(tmp_path, size, box):
    write_annotations(tmp_path, size, box)
    for read in (ka.data.from_coco, ka.data.from_voc):
        (example,) = read(test=tmp_path).test
        scale = example.size[0] / 6
        assert example.size == (6 * scale, 4 * scale)
        assert np.array(example.boxes[0]).tolist() == [x * scale for x in (1, 4, 3, 5)]
