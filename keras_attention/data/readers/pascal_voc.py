"""Pascal VOC: images with boxes, from one XML file per image."""

import pathlib
import xml.etree.ElementTree as ElementTree

from keras_attention.data.readers.boxed_images import BoxedImage, turn_boxes
from keras_attention.data.readers.image_folders import SUFFIXES, keep_readable, read_image
from keras_attention.data.readers.tables import line_error
from keras_attention.data.splits import read_parts
from keras_attention.files.io import is_file, leads_outside, quote_value, read_bytes

ANNOTATIONS, PICTURES, SETS = "Annotations", "JPEGImages", "ImageSets"
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def from_voc(
    train=None,
    dev=None,
    test=None,
    *,
    labels=None,
    image_size=None,
    dev_fraction=0.1,
    seed=0,
    on_error="raise",
):
    """Read a `DataSet` of `BoxedImage` from files of Pascal VOC (Everingham et al., 2010).

    Images are expected in `JPEGImages`, or next to the XML files. They are read once to find
    damaged ones, and again in each use. Boxes that refer to an image as stored are rotated with it
    if its EXIF orientation requires this, as in `from_coco`. Coordinates are used unchanged, as in
    TFDS. Objects marked as difficult are treated like crowds: they are used neither in training nor
    in scores.

    Args:
        train, dev, test: a path, a list of paths, or None. A path names a list or a folder. In a
            list, such as `ImageSets/Main/train.txt`, the first word of each line is the name of a
            file in `Annotations`. For a folder, all XML files in it, or in its subfolder
            `Annotations`, are read.
        labels: the names of the classes in the order of their ids, such as the labels of a trained
            model. None sorts the classes of all boxes.
        image_size: (height, width) to resize images to, or an int for the longer side. None lets
            the task choose.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras
    import numpy as np
    import keras_attention as ka

    keras.utils.save_img("1.png", np.zeros((20, 30, 3)), scale=False)
    box = "<xmin>5</xmin><ymin>5</ymin><xmax>15</xmax><ymax>13</ymax>"
    cell = f"<object><name>cell</name><bndbox>{box}</bndbox></object>"
    size = "<size><width>30</width><height>20</height></size>"
    pathlib.Path("1.xml").write_text(f"<annotation>{size}{cell}</annotation>")
    (image,) = ka.data.from_voc(test=".").test
    assert image.boxes == ((5.0, 5.0, 15.0, 13.0),) and image.labels == ("cell",)
    ```
    """
    parts = read_parts(_read_part, train, dev, test, on_error)
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return BoxedImage.collect(**parts, labels=labels, **options)


def _read_part(path, problems):
    path = pathlib.Path(path)
    if path.is_file() and path.suffix == ".txt":
        root = path.parents[2] if SETS in path.parts[-3:-1] else path.parent
        files = _list_files(path, root / ANNOTATIONS, problems)
    elif path.is_dir():
        folder = path / ANNOTATIONS if (path / ANNOTATIONS).is_dir() else path
        files = sorted(folder.glob("*.xml"))
    else:
        raise ValueError(
            f"{path}: expected a list .txt, or a folder of XML files or with {ANNOTATIONS}."
        )
    if not files and not problems:
        raise ValueError(f"{path} names no XML file.")
    examples = problems.read_each(read_voc, ((file,) for file in files))
    return [turn_boxes(*one) for one in keep_readable(examples, problems)]


def _list_files(path, folder, problems):
    """Return the paths of the XML files in `folder` whose names are in the text file `path`."""
    content = read_bytes(path)
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        number = 1 + content.count(b"\n", 0, error.start)
        byte = f"byte 0x{content[error.start]:02x} at position {error.start}"
        raise line_error(path, number, f"not UTF-8: {byte}. Save the list as UTF-8") from error

    def find(number, line):
        name = f"{line.split()[0]}.xml"
        if leads_outside(name):
            problem = f"{quote_value(name)} is outside of {folder}: name files in it"
            raise line_error(path, number, problem)
        if not is_file(folder / name):
            raise line_error(path, number, f"{quote_value(name)} is not in {folder}")
        return folder / name

    return problems.read_each(find, ((k, line) for k, line in enumerate(lines, 1) if line.strip()))


def read_voc(path):
    """Read one XML file of Pascal VOC, and return a `BoxedImage`.

    Raise a ValueError if the file is not valid XML, or an object in it is incomplete.
    """
    path = pathlib.Path(path)
    content = read_bytes(path)
    if b"<!ENTITY" in content:
        raise ValueError(f"{path} defines entities: expected an annotation without them.")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not valid XML: {error}. Mend or remove it.") from error
    boxes, labels, hard = [], [], []
    for element in root.iter("object"):
        boxes.append(tuple(_read_number(path, element, f"bndbox/{name}") for name in CORNERS))
        name = (element.findtext("name") or "").strip()
        if not name:
            raise ValueError(f"{path}: an object has no name.")
        labels.append(name)
        hard.append((element.findtext("difficult") or "0").strip() == "1")
    picture = _find_picture(path, (root.findtext("filename") or "").strip())
    crowds = tuple(hard) if any(hard) else ()
    size = _read_size(path, root, picture)
    return BoxedImage(picture, tuple(boxes), tuple(labels), crowds, size, path.stem)


def _read_size(path, root, picture):
    """Return the (height, width) of an image, from its XML file, or else from the image itself.

    `root` is the content of the XML file `path`. `picture` is the path of the image.
    """
    if root.find("size") is None:
        return read_image(picture).shape[:2]
    size = tuple(int(_read_number(path, root, f"size/{name}")) for name in ("height", "width"))
    if min(size) < 1:
        raise ValueError(
            f"{path}: its size is {size[1]} by {size[0]} pixels: expected one or more of each."
        )
    return size


def _read_number(path, element, name):
    text = element.findtext(name)
    if text is None:
        raise ValueError(f"{path} has no {name}: expected a number there.")
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = None
    if value is None or not abs(value) < 1e9:
        raise ValueError(f"{path}: {name} is {quote_value(text)}: expected a number.")
    return value


def _find_picture(path, name):
    """Return the path of the image for an XML file. `name` is the image's name in this file."""
    names = [pathlib.PurePath(name).name] if name else []
    names += [path.stem + suffix for suffix in SUFFIXES]
    for folder in (path.parent.parent / PICTURES, path.parent):
        for each in names:
            if is_file(folder / each):
                return folder / each
    raise ValueError(
        f"{path}: its image {quote_value(names[0])} is neither in {PICTURES} nor beside it."
    )
