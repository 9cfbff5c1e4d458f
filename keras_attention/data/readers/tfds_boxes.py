"""Images with boxes from TensorFlow Datasets."""

import functools

from keras_attention.data.readers.boxed_images import (
    FORMAT,
    BoxedImage,
    convert_boxes,
    turn_stored_boxes,
)
from keras_attention.data.readers.orientation import find_orientation
from keras_attention.data.readers.tfds_builder import find_tfds_builder, read_splits
from keras_attention.files.extras import import_tensorflow, import_tfds


def from_tfds_boxes(
    name, *, splits=None, labels=None, image_size=None, dev_fraction=0.1, seed=0, data_dir=None
):
    """Read a `DataSet` of `BoxedImage` from TFDS, such as `"bccd"` or `"coco/2017"`.

    Images are kept as the bytes of their files and decoded in each use. If the test split is
    missing, or its boxes are secret as in COCO, the validation split becomes test.

    Args:
        name: str, the name in the TFDS catalog of a dataset with the features `image` and
            `objects`. The objects must have `bbox` and `label`.
        splits: dict that maps `"train"`, `"dev"` and `"test"` to splits in TFDS's notation. None
            uses the official splits.
        labels: the names of the classes in the order of their ids. None uses the classes of the
            dataset.
        image_size: (height, width) to resize images to, or an int for the longer side. None lets
            the task choose.
        dev_fraction: float, the share of train that becomes dev if the validation split is missing.
        seed: int, for the random choice of these examples.
        data_dir: path of the folder with TFDS's data. None uses TFDS's default.

    Example (downloads the data):

        data = ka.data.from_tfds_boxes("bccd")
        data.train[0].boxes, data.train[0].labels
    """
    tfds = import_tfds("from_tfds_boxes")
    builder = find_tfds_builder(tfds, name, data_dir)
    features = builder.info.features
    objects = features["objects"].feature if "objects" in features else {}
    missing = [x for x in ("bbox", "label") if x not in objects]
    if "image" not in features or missing:
        raise ValueError(
            f"{name} lacks image, or objects with bbox and label: it has {', '.join(features)}."
        )
    read = functools.partial(_read_split, tfds)
    parts = read_splits(tfds, builder, name, splits, read, ("test",))
    if parts.get("dev") and not any(example.boxes for example in parts.get("test", ())):
        parts["test"] = parts.pop("dev")
    labels = objects["label"].names if labels is None else labels
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return BoxedImage.collect(**parts, labels=labels, **options)


def _read_split(tfds, builder, split):
    tf = import_tensorflow("from_tfds_boxes")
    names = builder.info.features["objects"].feature["label"].names
    dataset = builder.as_dataset(split=split, decoders={"image": tfds.decode.SkipDecoding()})
    examples = []
    for k, example in enumerate(dataset.as_numpy_iterator()):
        objects = example["objects"]
        crowds = tuple(map(bool, objects.get("is_crowd", ())))
        size = tuple(tf.io.decode_image(example["image"], expand_animations=False).shape[:2])
        boxes, labels = objects["bbox"], tuple(names[number] for number in objects["label"])
        if len(boxes):
            boxes = convert_boxes(boxes, "rel_yxyx", FORMAT, size)
        boxes, name = tuple(map(tuple, boxes)), _read_name(example, k)
        stored = BoxedImage(example["image"], boxes, labels, crowds, size, name)
        examples.append(turn_stored_boxes(stored, find_orientation(example["image"])))
    return examples


def _read_name(example, k):
    """Return a name for example `k` of a split: its image id, its file name, or else `k`."""
    for name in ("image/id", "image/filename"):
        if name in example:
            value = example[name]
            return value.decode("utf-8").strip() if isinstance(value, bytes) else int(value)
    return k
