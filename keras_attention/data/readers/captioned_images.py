"""Images with captions, from COCO's JSON and from tables."""

import functools
import pathlib
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.preprocessors.objects_as_text import (
    BINS,
    check_class_names,
    describe_objects,
)
from keras_attention.data.readers.coco import find_coco_file, find_picture, is_coco, read_captions
from keras_attention.data.readers.image_folders import keep_readable
from keras_attention.data.readers.tables import find_suffix, name_error, read_columns
from keras_attention.data.splits import read_parts
from keras_attention.files.io import is_file

PARAMETERS = "image_column", "text_column"


class CaptionedImage(typing.NamedTuple):
    """An image and one or more captions.

    Attributes:
        image: path of a file, bytes of a file, or array (H, W, C), uint8 or floats from 0 to 1.
        texts: tuple of str, the captions, each about the whole image.
        size, objects: if the caption lists the objects in the image: (height, width) of the image,
            and the list of `BoxedImage.objects`. Otherwise None.
    """

    image: object
    texts: tuple
    size: tuple | None = None
    objects: tuple | None = None

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, image_size=None, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (image, captions) for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. `image_size` is the (height, width) to resize images to, or an int for the
        longer side, or None.
        """
        parts = [[_check(*example) for example in part] for part in (train, dev, test)]
        about = {"image_size": image_size}
        options = {"dev_fraction": dev_fraction, "seed": seed, "about": about}
        return DataSet.from_parts(cls, *parts, **options)


def caption_objects(data, bins=BINS, seed=0):
    """Make a `DataSet` of `CaptionedImage` whose captions list the objects in each image.

    A captioning model then learns to detect objects. The captions have the format of
    `ka.data.describe_objects`. The labels of the dataset are the classes of the objects.

    Args:
        data: `DataSet` of `BoxedImage`.
        bins: int, the number of positions along a side of the image.
        seed: int, for a random order of the objects in each training caption, which is drawn once
            (Chen et al., 2022, *Pix2Seq*, section 2.1). In dev and test, objects are sorted from
            top to bottom, then from left to right.
    """
    check_class_names(data.labels)
    parts = {name: [] for name in data.parts}
    for name, part in data.parts.items():
        for k, one in enumerate(part):
            text = describe_objects(one, bins, seed=seed + k if name == "train" else None)
            example = CaptionedImage(one.image, (text,), one.size, tuple(one.objects()))
            parts[name].append(example)
    about = {**data.about, "bins": bins}
    return DataSet(CaptionedImage, **parts, labels=data.labels, notes=data.notes, about=about)


def _check(image, texts, size=None, objects=None):
    """Make a `CaptionedImage` from `texts`, one caption (a str) or several.

    A caption may be empty only if it lists objects and the image has none (`objects` is ()).
    """
    texts = (texts,) if isinstance(texts, str) else tuple(texts)
    whole = all(isinstance(text, str) and (text.strip() or objects == ()) for text in texts)
    if not texts or not whole:
        raise ValueError(f"texts={texts!r:.60}: expected one or more str, none of them empty.")
    return CaptionedImage(image, texts, size, objects)


def from_captions(
    train=None,
    dev=None,
    test=None,
    *,
    images=None,
    image_column="image",
    text_column="text",
    image_size=None,
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `CaptionedImage` from files.

    - `.json`: COCO's captions (https://cocodataset.org/#format-data): `images` with `id` and
      `file_name`, `annotations` with `image_id` and `caption`, one or more for each image. A folder
      that contains such a file under one of the names that `from_coco` accepts works, too.
    - `.csv`, `.tsv`, `.jsonl`, gzipped (`.gz`) or not: the path of an image and a caption in each
      row. An image may have several rows.

    Images are read once to find damaged ones, and again in each use. Raise a ValueError for damaged
    files.

    Args:
        train, dev, test: a path, a list of paths, or None.
        images: path of the folder with the images. None looks in the folder of the file, and for
            COCO also in the folders that `from_coco` searches. Tables may contain absolute paths.
        image_column, text_column: str, the names of the columns, or the keys in JSON. For a file
            without column names, ints that count from 0.
        image_size: (height, width) to resize images to, or an int for the longer side. None lets
            the task choose.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras
    import numpy as np
    import keras_attention as ka

    keras.utils.save_img("1.png", np.zeros((20, 30, 3)), scale=False)
    pathlib.Path("captions.csv").write_text("image,text\\n1.png,a dark night\\n1.png,night\\n")
    (example,) = ka.data.from_captions(test="captions.csv").test
    assert example.texts == ("a dark night", "night")
    ```
    """
    columns = {"columns": (image_column, text_column), "encoding": encoding}
    parts = read_parts(_read, train, dev, test, on_error, images=images, **columns)
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return CaptionedImage.collect(**parts, **options)


def _read(path, images, columns, encoding, problems):
    path = find_coco_file(path) if is_coco(path) else pathlib.Path(path)
    if path.suffix == ".json":
        pairs = read_captions(path, functools.partial(find_picture, path, images=images), problems)
    elif find_suffix(path):
        folder = path.parent if images is None else pathlib.Path(images)
        rows = read_columns(path, columns, encoding, parameters=PARAMETERS, problems=problems)
        pairs = []
        for name, text in rows:
            with problems.note():
                if not is_file(folder / name):
                    raise ValueError(
                        f"{path}: the image {folder / name} is missing. Put it there, or name "
                        "the folder of the images with images=."
                    )
                pairs.append((folder / name, text))
    else:
        raise name_error(path, "captions", ", or in .json, as COCO's")
    texts_of = {}
    for picture, text in pairs:
        texts_of.setdefault(picture, []).append(text)
    if not texts_of and not problems:
        raise ValueError(f"{path} has no caption.")
    examples = [CaptionedImage(picture, tuple(texts)) for picture, texts in texts_of.items()]
    return [example for example, _ in keep_readable(examples, problems)]
