"""COCO's JSON format: reads images with boxes or captions, and writes results."""

import pathlib

from keras_attention.data.readers.boxed_images import BoxedImage, turn_boxes
from keras_attention.data.readers.image_folders import keep_readable
from keras_attention.data.splits import read_parts
from keras_attention.files.fields import MOST_PIXELS, Fields
from keras_attention.files.io import is_file, leads_outside, quote_value, read_json

NAMES = ("annotations.json", "_annotations.coco.json")  # of the JSON file in a folder
MOST_PLACE = 1e9  # maximum coordinate of a box, in pixels


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
    """Read a `DataSet` of `BoxedImage` from COCO's JSON files.

    The files contain `images` with `id`, `file_name`, `width` and `height`, `categories` with `id`
    and `name`, and `annotations` with `image_id`, `category_id`, `bbox` ([x, y, width, height] in
    pixels) and optionally `iscrowd`. Images are read once to find damaged ones, and again in each
    use. Raise a ValueError that names a damaged file.

    Boxes are expected in pixels of the upright image, as viewers show it after applying its EXIF
    orientation. If `width` and `height` are the size of the image as stored, boxes are assumed to
    refer to the stored image, and are rotated with it.

    Args:
        train, dev, test: path of a JSON file, or of a folder that contains `annotations.json` or
            `_annotations.coco.json`. Or a list of such paths, or None.
        images: path of the folder with the images. None searches the folder of the JSON file, its
            subfolder `images`, and COCO's folder for the split, such as `val2017` for
            `annotations/instances_val2017.json`.
        labels: the names of the classes in the order of their ids, such as the labels of a trained
            model. None uses the categories in the order of their ids.
        image_size: (height, width) to resize images to, or an int for the longer side. None lets
            the task choose.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import json
    import pathlib
    import keras
    import numpy as np
    import keras_attention as ka

    keras.utils.save_img("1.png", np.zeros((20, 30, 3)), scale=False)
    content = {
        "images": [{"id": 7, "file_name": "1.png", "width": 30, "height": 20}],
        "categories": [{"id": 3, "name": "cell"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [5, 5, 10, 8]}],
    }
    pathlib.Path("annotations.json").write_text(json.dumps(content))
    (image,) = ka.data.from_coco(test="annotations.json").test
    assert image.boxes == ((5.0, 5.0, 15.0, 13.0),) and image.labels == ("cell",)
    ```
    """
    names = []
    parts = read_parts(_read_file, train, dev, test, on_error, images=images, names=names)
    labels = list(dict.fromkeys(names)) if labels is None else labels
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return BoxedImage.collect(**parts, labels=labels, **options)


def is_coco(path):
    """Return whether `path` is a JSON file, or a folder that contains one of the files `NAMES`."""
    path = pathlib.Path(path)
    return path.suffix == ".json" or any((path / name).is_file() for name in NAMES)


def find_coco_file(path):
    """Return `path` if it is a file, or the COCO file in the folder `path`, as a pathlib.Path."""
    path = pathlib.Path(path)
    if not path.is_dir():
        return path
    files = [path / name for name in NAMES if (path / name).is_file()]
    if not files:
        raise ValueError(f"{path} has no file {' or '.join(NAMES)}: name the JSON file itself.")
    return files[0]


def _read_file(path, images, names, problems):
    """Read a COCO file, and return a list of `BoxedImage`. Append its categories to `names`.

    `images` is the folder with the images, or None.
    """
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
        raise ValueError(f"{path} has no image.")
    objects = _read_annotations(fields, categories, pictures, problems)
    examples = []
    for number, picture in pictures.items():
        if picture is None or objects[number] is None:
            continue  # its error is already noted
        boxes, labels, crowds = zip(*objects[number], strict=True) if objects[number] else [()] * 3
        examples.append(BoxedImage(picture[0], boxes, labels, crowds, picture[1], number))
    return [turn_boxes(*one) for one in keep_readable(examples, problems)]


def _list_by_id(fields, name):
    """Yield (id, entry) for each entry of the list `name` in a COCO file. Ids must differ."""
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
    """Return the objects in each image: a dict from image id to a list of (box, label, is a crowd).

    A broken annotation makes the list of its image None. `categories` and `pictures` are dicts
    whose keys are the ids of categories and images. `fields` is the reader of the file. Errors are
    collected in `problems`, a `Problems`.
    """
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
            objects[image] = None  # without this object, the example would be wrong
        elif labeled_box is not None and objects[image] is not None:
            objects[image].append(labeled_box)
    return objects


def _read_object(entry, categories):
    """Read `entry`, one annotation of a COCO file, and return (box, label, is a crowd).

    `categories` is a dict from the id of a category to its name.
    """
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
    """Return the path of the image that a COCO file (`path`) calls `name`.

    `images` is the folder to search. None searches the folders that `from_coco` lists.
    """
    if leads_outside(name):
        raise ValueError(
            f"{path}: file_name is {quote_value(name)}: expected a path within the folder images=."
        )
    folder, split = path.parent, path.stem.rpartition("_")[2]
    if images is not None:
        folders = [pathlib.Path(images)]
    else:
        shared = folder.parent / "images"
        folders = [folder, folder / "images", folder.parent / split, shared / split, shared]
    for base in folders:
        if is_file(base / name):
            return base / name
    searched = ", ".join(dict.fromkeys(str(base) for base in folders))
    raise ValueError(
        f"{path}: {quote_value(name)} is not in any of {searched}. Name its folder with images=."
    )


def read_captions(path, find, problems):
    """Read COCO's captions from a JSON file, and return [(path of an image, caption)].

    `find` is a function from the file name of an image to its path. Errors are collected in
    `problems`, a `Problems`.
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
    """Return whether a COCO file contains captions instead of boxes.

    `path` is the file, or a folder that contains it.
    """
    path = find_coco_file(path) if is_coco(path) else None
    content = read_json(path) if path is not None and path.is_file() else None
    annotations = content.get("annotations") if isinstance(content, dict) else None
    first = annotations[0] if isinstance(annotations, list) and annotations else None
    return isinstance(first, dict) and "caption" in first


def list_coco_results(objects, image_ids, category_ids):
    """Convert detected objects to COCO's results format, a list of dicts for `json.dump`.

    Each dict is `{"image_id", "category_id", "bbox": [x, y, width, height], "score"}`.

    Args:
        objects: list with a list for each image of `ka.tasks.FoundObject` or (label, score, box).
            Boxes are (x0, y0, x1, y1) in pixels.
        image_ids: list with the id of each image. After `from_coco`, this is `BoxedImage.name`.
        category_ids: dict from label to id, or the path of an annotation file with `categories`.

    Raises:
        ValueError: a label has no category.

    ```python
    import keras_attention as ka

    objects = [[("cell", 0.75, (5.0, 5.0, 15.0, 13.0))]]
    results = ka.data.list_coco_results(objects, [7], {"cell": 3})
    assert results == [
        {"image_id": 7, "category_id": 3, "bbox": [5.0, 5.0, 10.0, 8.0], "score": 0.75}
    ]
    ```
    """
    if not isinstance(category_ids, dict):
        fields = Fields.read(find_coco_file(category_ids))
        categories = _list_by_id(fields, "categories")
        category_ids = {entry.text("name"): number for number, entry in categories}
    results = []
    for boxes, image in zip(objects, image_ids, strict=True):
        for label, score, (x0, y0, x1, y1) in boxes:
            if label not in category_ids:
                expected = f"expected one of {', '.join(category_ids)}"
                raise ValueError(f"The label {label!r} has no category: {expected}.")
            ids = {"image_id": image, "category_id": category_ids[label]}
            box = [float(x0), float(y0), float(x1 - x0), float(y1 - y0)]
            results.append({**ids, "bbox": box, "score": float(score)})
    return results
