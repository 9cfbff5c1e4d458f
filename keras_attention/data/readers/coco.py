"""COCO's JSON: pictures with boxes are read from it, and what is found is written as results."""

import functools
import pathlib

from keras_attention.data.readers.boxed_images import BoxedImage, turn_boxes
from keras_attention.data.readers.image_folders import keep_readable
from keras_attention.data.splits import read_parts
from keras_attention.files.fields import MOST_PIXELS, Fields
from keras_attention.files.io import is_file, leads_outside, quote_value, read_json

NAMES = ("annotations.json", "_annotations.coco.json")  # of the file in a folder
MOST_PLACE = 1e9  # of a box, in pixels


def from_coco(
    train=None,
    dev=None,
    test=None,
    *,
    images=None,
    labels=None,
    image_size=None,
    dev_fraction=0.1,
    seed=0,
    on_error="raise",
):
    """Pictures with boxes from files as COCO has them (https://cocodataset.org/#format-data).

    Read are `images` with `id`, `file_name`, `width` and `height`, `categories` with `id` and
    `name`, and `annotations` with `image_id`, `category_id`, `bbox` ([x, y, width, height] in
    pixels) and `iscrowd`, where it is there.

    Args:
        train, dev, test: path of a JSON file, or of a folder with one that is called
            `annotations.json` or `_annotations.coco.json`; a list of paths; or None.
        images: path of the folder that `file_name` begins in; None looks beside the JSON file, in
            `images` there, and in the folder of the same split as COCO names it, so that
            `annotations/instances_val2017.json` finds `val2017`.
        labels: names of the classes in the order of their ids, such as those of a trained model;
            None takes the categories in the order of their ids.
        image_size: as in `BoxedImage.collect`.
        dev_fraction, seed, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `BoxedImage`, whose pictures are read once to find damaged ones, and again
        when they are needed.

    Boxes are in pixels of the picture as viewers show it, upright by its EXIF orientation. Where
    `width` and `height` are those of a picture that is stored on its side, so are its boxes, and
    they are turned with it.

    A damaged JSON file is a ValueError that names it.

    ```python
    import json
    import pathlib
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    keras.utils.save_img(folder / "1.png", np.zeros((20, 30, 3)), scale=False)
    found = {
        "images": [{"id": 7, "file_name": "1.png", "width": 30, "height": 20}],
        "categories": [{"id": 3, "name": "cell"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [5, 5, 10, 8]}],
    }
    (folder / "annotations.json").write_text(json.dumps(found))
    (image,) = ka.data.from_coco(test=folder).test
    assert image.boxes == ((5.0, 5.0, 15.0, 13.0),) and image.labels == ("cell",)
    ```
    """
    names = []
    read = functools.partial(_read_file, images=images, names=names)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    labels = list(dict.fromkeys(names)) if labels is None else labels
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return BoxedImage.collect(**parts, labels=labels, **options)


def is_coco(path):
    """Return whether `path` is a JSON file, or a folder with one that is called as COCO's are."""
    path = pathlib.Path(path)
    return path.suffix == ".json" or any((path / name).is_file() for name in NAMES)


def find_coco_file(path):
    """Return the JSON file that `path` is, or that is in the folder `path`."""
    path = pathlib.Path(path)
    if not path.is_dir():
        return path
    files = [path / name for name in NAMES if (path / name).is_file()]
    if not files:
        raise ValueError(f"{path} has no file {' or '.join(NAMES)}: name the JSON file itself.")
    return files[0]


def _read_file(path, images, names, problems):
    """Return the pictures of a JSON file; names of its categories are added to `names`."""
    path = find_coco_file(path)
    fields = Fields.read(path)
    categories = {number: entry.text("name") for number, entry in _list_by_id(fields, "categories")}
    names += [categories[number] for number in sorted(categories)]
    pictures = {}
    for number, entry in _list_by_id(fields, "images"):
        pictures[number] = None
        with problems.note():
            size = tuple(entry.whole(name, most=MOST_PIXELS) for name in ("height", "width"))
            pictures[number] = find_picture(path, entry.text("file_name"), images), size
    if not pictures:
        raise ValueError(f"{path} holds no picture.")
    objects = _read_annotations(fields, categories, pictures, problems)
    examples = []
    for number, picture in pictures.items():
        if picture is None or objects[number] is None:
            continue  # noted
        boxes, labels, crowds = zip(*objects[number], strict=True) if objects[number] else [()] * 3
        examples.append(BoxedImage(picture[0], boxes, labels, crowds, picture[1], number))
    return [turn_boxes(*one) for one in keep_readable(examples, problems)]


def _list_by_id(fields, name):
    """Yields (id, `Fields`) of the objects in the list `name`, whose ids are all different."""
    seen = {}
    for k in range(len(fields.entries(name))):
        entry = fields.entry(name, k)
        number = _read_id(entry, "id")
        if number in seen:
            raise entry.error("id", f"another one, as {seen[number]} has this")
        seen[number] = entry.within
        yield number, entry


def _read_id(entry, name):
    number = entry.get(name)
    if not isinstance(number, int | str) or isinstance(number, bool):
        raise entry.error(name, "a whole number or a string")
    return number


def _read_annotations(fields, categories, pictures, problems):
    """{id of a picture: [(box, label, whether it is a crowd)], or None where one is broken}"""
    objects = {number: [] for number in pictures}
    for k in range(len(fields.entries("annotations"))):
        image, labeled_box = None, None
        with problems.note():
            entry = fields.entry("annotations", k)
            image = _read_id(entry, "image_id")
            if image not in pictures:
                raise entry.error("image_id", "an id of images")
            labeled_box = _read_object(entry, categories)
        if labeled_box is None and image in objects:
            objects[image] = None  # a picture lacks an object: it would teach something wrong
        elif labeled_box is not None and objects[image] is not None:
            objects[image].append(labeled_box)
    return objects


def _read_object(entry, categories):
    """Return (box, label, whether it is a crowd) of an annotation."""
    box = entry.entries("bbox")
    if len(box) != 4 or not all(isinstance(x, int | float) and abs(x) < MOST_PLACE for x in box):
        raise entry.error("bbox", "four numbers, [x, y, width, height]")
    x, y, width, height = box
    number = _read_id(entry, "category_id")
    if number not in categories:
        raise entry.error("category_id", "an id of categories")
    crowd = entry.get("iscrowd", 0)
    if not isinstance(crowd, int | float) or crowd not in (0, 1):
        raise entry.error("iscrowd", "0, 1, true or false")
    return (x, y, x + width, y + height), categories[number], bool(crowd)


def find_picture(path, name, images):
    """Return the path of a picture that the JSON file `path` names: see `from_coco`."""
    if leads_outside(name):
        raise ValueError(
            f"{path}: file_name is {quote_value(name)}: expected the name of a picture in the "
            "folder of pictures, without .. and not absolute. Name that folder with images=."
        )
    folder, split = path.parent, path.stem.rpartition("_")[2]
    if images is not None:
        folders = [pathlib.Path(images)]
    else:
        folders = [folder, folder / "images"]
        folders += [base / split for base in (folder.parent, folder.parent / "images")]
        folders += [folder.parent / "images"]
    for base in folders:
        if is_file(base / name):
            return base / name
    searched = ", ".join(dict.fromkeys(str(base) for base in folders))
    raise ValueError(
        f"{path}: the picture {quote_value(name)} is in none of {searched}. Put it there, or name "
        "its folder with images=."
    )


def read_captions(path, find, problems):
    """[(path of a picture, caption)] of a JSON file of COCO's captions.

    Args:
        find: function of a picture's name to its path.
        problems: `Problems`.
    """
    fields = Fields.read(path)
    pictures = {}
    for number, entry in _list_by_id(fields, "images"):
        pictures[number] = None
        with problems.note():
            pictures[number] = find(entry.text("file_name"))
    captions = []
    for k in range(len(fields.entries("annotations"))):
        with problems.note():
            entry = fields.entry("annotations", k)
            number, text = _read_id(entry, "image_id"), entry.text("caption").strip()
            if number not in pictures:
                raise entry.error("image_id", "an id of images")
            if not text:
                raise entry.error("caption", "a text")
            if pictures[number] is not None:
                captions.append((pictures[number], " ".join(text.split())))
    return captions


def has_captions(path):
    """Return whether the JSON file that `path` is, or has, is one of captions, and not of boxes."""
    path = find_coco_file(path) if is_coco(path) else None
    content = read_json(path) if path is not None and path.is_file() else None
    annotations = content.get("annotations") if isinstance(content, dict) else None
    first = annotations[0] if isinstance(annotations, list) and annotations else None
    return isinstance(first, dict) and "caption" in first


def list_coco_results(found, image_ids, category_ids):
    """Boxes in the form in which COCO takes results, a list of dicts for `json.dump`.

    Args:
        found: for each picture a list of `ka.tasks.FoundObject`, or of (label, score, box), boxes
            (x0, y0, x1, y1) in pixels.
        image_ids: of these pictures: the `name` of each `BoxedImage` that `from_coco` read.
        category_ids: dict, label -> id; or the path of an annotation file with `categories`.

    Returns:
        list of `{"image_id", "category_id", "bbox": [x, y, width, height], "score"}`.

    ```python
    import keras_attention as ka

    found = [[("cell", 0.75, (5.0, 5.0, 15.0, 13.0))]]
    results = ka.data.list_coco_results(found, [7], {"cell": 3})
    assert results == [
        {"image_id": 7, "category_id": 3, "bbox": [5.0, 5.0, 10.0, 8.0], "score": 0.75}
    ]
    ```
    """
    if not isinstance(category_ids, dict):
        fields = Fields.read(find_coco_file(category_ids))
        category_ids = {
            entry.text("name"): number for number, entry in _list_by_id(fields, "categories")
        }
    results = []
    for boxes, image in zip(found, image_ids, strict=True):
        for label, score, (x0, y0, x1, y1) in boxes:
            if label not in category_ids:
                raise ValueError(
                    f"The label {label!r} has no category: {', '.join(category_ids)} have."
                )
            results.append(
                {
                    "image_id": image,
                    "category_id": category_ids[label],
                    "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
                    "score": float(score),
                }
            )
    return results
