"""Pictures with texts about them: in memory, from COCO's captions and from tables, as batches."""

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
from keras_attention.data.readers.columns import SUFFIXES, UTF_8, find_suffix, read_columns
from keras_attention.data.readers.image_folders import keep_readable
from keras_attention.data.splits import read_parts
from keras_attention.files.io import is_file

PARAMETERS = "image_column", "text_column"


class CaptionedImage(typing.NamedTuple):
    """A picture and what is said about it.

    `image` is the path of a file, the bytes of one, or an array (H, W, C), uint8 or floats from 0
    to 1. `texts` is a tuple of str, each of which describes it whole. `size` is (height, width) and
    `objects` as `BoxedImage.objects` gives them, where the text names objects; None else.
    """

    image: object
    texts: tuple
    size: tuple | None = None
    objects: tuple | None = None

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, image_size=None, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of (picture, text or texts).

        Args:
            train, dev, test: lists. Without `dev`, a part of train becomes it.
            image_size: what pictures are to be resized to, (height, width), or an int for the
                longer side. None leaves it to the task.

        ```python
        import numpy as np
        import keras_attention as ka

        night, day = np.zeros((8, 8, 1)), np.ones((8, 8, 1))
        pairs = [(night, "dark"), (day, ("light", "white"))]
        data = ka.data.CaptionedImage.collect(pairs, dev_fraction=0)
        assert [example.texts for example in data.train] == [("dark",), ("light", "white")]
        ```
        """
        parts = [[_check(*example) for example in part] for part in (train, dev, test)]
        about = {"image_size": image_size}
        options = {"dev_fraction": dev_fraction, "seed": seed, "about": about}
        return DataSet.from_parts(cls, *parts, **options)


def caption_objects(data, bins=BINS, seed=0):
    """Write for each picture a text that names its objects, by `ka.data.describe_objects`.

    Args:
        data: `DataSet` of `BoxedImage`.
        bins: int, places along a side.
        seed: int, of the order of the objects in each training text, which is another one for
            each picture (Chen et al., 2022, *Pix2Seq*, section 2.1). Those of dev and test are in
            the order of their places.

    Returns:
        A `DataSet` of `CaptionedImage`. Its labels are the classes of the objects.
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
    """Return a `CaptionedImage`; the text of a picture without objects alone is empty."""
    texts = (texts,) if isinstance(texts, str) else tuple(texts)
    whole = all(isinstance(text, str) and (text.strip() or objects == ()) for text in texts)
    if not texts or not whole:
        raise ValueError(f"texts={texts!r:.60}: expected a text, or several, none of them empty.")
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
    encoding=UTF_8,
    on_error="raise",
):
    """Pictures with captions from files; the end of the name says what is in one.

    - `.json`: COCO's captions (https://cocodataset.org/#format-data): `images` with `id` and
      `file_name`, `annotations` with `image_id` and `caption`, of which a picture has several; or
      a folder with such a file, called as for `from_coco`.
    - `.csv`, `.tsv`, `.jsonl`: a picture's path and a text on each line, gzipped (`.gz`) or not;
      of a picture there may be several lines.

    Args:
        train, dev, test: a path, a list of paths, or None.
        images: path of the folder that names of pictures begin in; None is the folder of the file,
            and for COCO's also those where COCO puts them, as in `from_coco`. A table may also
            have absolute paths.
        image_column, text_column: str, the names of the columns, or of the keys in JSON; or ints,
            which count columns from 0 where no row names them.
        image_size: as in A `DataSet` of `CaptionedImage`.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `CaptionedImage`, whose pictures are read once to find damaged ones, and
        again when they are needed.

    A damaged table or JSON file is a ValueError that names it.

    ```python
    import pathlib
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    keras.utils.save_img(folder / "1.png", np.zeros((20, 30, 3)), scale=False)
    (folder / "captions.csv").write_text("image,text\\n1.png,a dark night\\n1.png,night\\n")
    (found,) = ka.data.from_captions(test=folder / "captions.csv").test
    assert found.texts == ("a dark night", "night") and found.image == folder / "1.png"
    ```
    """
    read = functools.partial(
        _read, images=images, columns=(image_column, text_column), encoding=encoding
    )
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
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
                        f"{path}: there is no picture {folder / name}. Put it there, or name the "
                        "folder that paths begin in with images=."
                    )
                pairs.append((folder / name, text))
    else:
        raise ValueError(
            f"{path} is no file of captions: expected a name that ends in .json, as COCO's, or in "
            f"{', '.join(SUFFIXES)}, gzipped (.gz) or not."
        )
    texts_of = {}
    for picture, text in pairs:
        texts_of.setdefault(picture, []).append(text)
    if not texts_of and not problems:
        raise ValueError(f"{path} holds no caption.")
    examples = [CaptionedImage(picture, tuple(texts)) for picture, texts in texts_of.items()]
    return [example for example, _ in keep_readable(examples, problems)]
