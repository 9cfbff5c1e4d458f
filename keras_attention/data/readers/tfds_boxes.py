"""Pictures with boxes of TensorFlow Datasets."""

from keras_attention.data.readers.boxed_images import (
    FORMAT,
    BoxedImage,
    convert_boxes,
    turn_stored_boxes,
)
from keras_attention.data.readers.orientation import find_orientation
from keras_attention.data.readers.tfds_builder import (
    find_splits,
    find_tfds_builder,
    prepare_builder,
)
from keras_attention.files.extras import import_tensorflow, import_tfds


def from_tfds_boxes(
    name, *, splits=None, labels=None, image_size=None, dev_fraction=0.1, seed=0, data_dir=None
):
    """Pictures with boxes of TensorFlow Datasets, such as `"bccd"`, `"coco/2017"` or `"voc/2007"`.

    Args:
        name: str, as in the TFDS catalogue: a set with the features `image` and `objects`, which
            have `bbox` and `label`.
        splits, dev_fraction, seed, data_dir: as in `from_tfds`. Where there is no test split, or
            its boxes are kept secret as in COCO, the validation split is for testing.
        labels: names of the classes in the order of their ids; None takes those of the set.
        image_size: as in `BoxedImage.collect`.

    Returns:
        A `DataSet` of `BoxedImage`, whose pictures are bytes as they are on disk, read when they
        are needed.

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
            f"{name} has no feature image, or no objects with bbox and label: expected pictures "
            f"with boxes, such as bccd. Its features are {', '.join(features)}."
        )
    builder = prepare_builder(tfds, builder, name)
    splits = find_splits(builder, name, splits, ("test",))
    read = {
        part: _read_split(tfds, builder, words) if words else [] for part, words in splits.items()
    }
    if read["dev"] and not any(example.boxes for example in read["test"]):
        read["test"], read["dev"] = read["dev"], []
    labels = objects["label"].names if labels is None else labels
    options = dict(image_size=image_size, dev_fraction=dev_fraction, seed=seed)
    return BoxedImage.collect(**read, labels=labels, **options)


def _read_split(tfds, builder, split):
    tf = import_tensorflow("from_tfds_boxes")
    names = builder.info.features["objects"].feature["label"].names
    dataset = builder.as_dataset(split=split, decoders={"image": tfds.decode.SkipDecoding()})
    examples = []
    for k, example in enumerate(dataset.as_numpy_iterator()):
        objects = example["objects"]
        crowds = objects.get("is_crowd", ())
        size = tuple(tf.io.decode_image(example["image"], expand_animations=False).shape[:2])
        boxes = (
            convert_boxes(objects["bbox"], "rel_yxyx", FORMAT, size) if len(objects["bbox"]) else ()
        )
        stored = BoxedImage(
            example["image"],
            tuple(map(tuple, boxes)),
            tuple(names[number] for number in objects["label"]),
            tuple(map(bool, crowds)),
            size,
            _read_name(example, k),
        )
        examples.append(turn_stored_boxes(stored, find_orientation(example["image"])))
    return examples


def _read_name(example, k):
    """Return the id of a picture, the name of its file, or its place in the split."""
    for name in ("image/id", "image/filename"):
        if name in example:
            value = example[name]
            return value.decode("utf-8").strip() if isinstance(value, bytes) else int(value)
    return k
