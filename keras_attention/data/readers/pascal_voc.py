"""Pictures with boxes as Pascal VOC has them: an XML file for each picture."""

import pathlib
import xml.etree.ElementTree as ElementTree

from keras_attention.data.readers.boxed_images import BoxedImage, turn_boxes
from keras_attention.data.readers.columns import line_error
from keras_attention.data.readers.image_folders import SUFFIXES, keep_readable, read_image
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
    """Pictures with boxes from files as Pascal VOC has them (Everingham et al., 2010).

    Args:
        train, dev, test: path of a list such as `ImageSets/Main/train.txt`, whose first words are
            names of files in `Annotations`; or of a folder that has `Annotations` with XML files,
            or XML files themselves, of which all are taken; a list of paths; or None. Pictures are
            in `JPEGImages`, or beside the XML files.
        labels: names of the classes in the order of their ids, such as those of a trained model;
            None sorts those that are there.
        image_size: as in `BoxedImage.collect`.
        dev_fraction, seed, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `BoxedImage`, whose pictures are read once to find damaged ones, and again
        when they are needed. Boxes of pictures with an EXIF orientation are as for `from_coco`.
        Coordinates are taken as they are, as TFDS takes them. Objects that are marked as difficult
        count as crowds: they are not trained on, and nothing is counted of them.

    ```python
    import pathlib
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    keras.utils.save_img(folder / "1.png", np.zeros((20, 30, 3)), scale=False)
    box = "<xmin>5</xmin><ymin>5</ymin><xmax>15</xmax><ymax>13</ymax>"
    found = f"<object><name>cell</name><bndbox>{box}</bndbox></object>"
    size = "<size><width>30</width><height>20</height></size>"
    (folder / "1.xml").write_text(f"<annotation>{size}{found}</annotation>")
    (image,) = ka.data.from_voc(test=folder).test
    assert image.boxes == ((5.0, 5.0, 15.0, 13.0),) and image.labels == ("cell",)
    ```
    """
    parts = read_parts(_read_part, {"train": train, "dev": dev, "test": test}, on_error)
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
            f"{path}: expected a list in {SETS}/Main that ends in .txt, or a folder with XML files "
            f"or with {ANNOTATIONS}."
        )
    if not files and not problems:
        raise ValueError(f"{path} names no XML file.")
    examples = []
    for file in files:
        with problems.note():
            examples.append(read_voc(file))
    return [turn_boxes(*one) for one in keep_readable(examples, problems)]


def _list_files(path, folder, problems):
    """Return the XML files in `folder` that the list `path` names."""
    content = read_bytes(path)
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        number = 1 + content.count(b"\n", 0, error.start)
        byte = f"byte 0x{content[error.start]:02x} at position {error.start}"
        raise line_error(path, number, f"not UTF-8: {byte}. Save the list as UTF-8") from error
    files = []
    for number, words in enumerate(map(str.split, lines), start=1):
        if words:
            name = f"{words[0]}.xml"
            with problems.note():
                if leads_outside(name):
                    problem = f"{quote_value(name)} is outside of {folder}: name files in it"
                    raise line_error(path, number, problem)
                if not is_file(folder / name):
                    raise line_error(path, number, f"there is no {quote_value(name)} in {folder}")
                files.append(folder / name)
    return files


def read_voc(path):
    """Return the `BoxedImage` of one XML file. See `from_voc`."""
    path = pathlib.Path(path)
    content = read_bytes(path)
    if b"<!ENTITY" in content:
        raise ValueError(f"{path} defines entities, which no annotation needs: it is not read.")
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
    """Return (height, width) as the XML says, or else of the picture itself."""
    if root.find("size") is None:
        return read_image(picture).shape[:2]
    size = tuple(int(_read_number(path, root, f"size/{name}")) for name in ("height", "width"))
    if min(size) < 1:
        raise ValueError(
            f"{path}: its size is {size[1]} by {size[0]} pixels: expected one or more of each. "
            "Without <size>, it is that of the picture itself."
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
    """Return the picture of the XML file `path`, which calls it `name`."""
    names = [pathlib.PurePath(name).name] if name else []
    names += [path.stem + suffix for suffix in SUFFIXES]
    for folder in (path.parent.parent / PICTURES, path.parent):
        for each in names:
            if is_file(folder / each):
                return folder / each
    raise ValueError(
        f"{path}: its picture {quote_value(names[0])} is neither in "
        f"{path.parent.parent / PICTURES} nor beside it."
    )
