"""Pictures with boxes around what is in them: in memory, checked, and as batches."""

import concurrent.futures
import typing

import numpy as np

from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.image_folders import read_image
from keras_attention.data.readers.orientation import SIDEWAYS, turn_box
from keras_attention.data.shares import check_batches, gather_batches, set_rows
from keras_attention.files.extras import import_tensorflow

MOST_BYTES = 4 << 30  # of resized pictures that batches keep in memory
FORMAT = "xyxy"  # of boxes, as Keras names it: left, top, right, bottom in pixels


class BoxedImage(typing.NamedTuple):
    """A picture and its objects.

    `image` is the path of a file, the bytes of one, or an array (H, W, C), uint8 or floats from 0
    to 1. `boxes` is a tuple of (x0, y0, x1, y1) in pixels, `labels` a str for each. `crowds` says
    of each whether it is a crowd, of which COCO counts nothing; empty where none is. `size` is
    (height, width), the pixels that boxes are in; None for those of an array. `name` is for results
    and errors.
    """

    image: object
    boxes: tuple = ()
    labels: tuple = ()
    crowds: tuple = ()
    size: tuple | None = None
    name: object = None

    @classmethod
    def collect(
        cls,
        train=(),
        dev=(),
        test=(),
        *,
        labels=None,
        bounding_box_format=FORMAT,
        image_size=None,
        dev_fraction=0.1,
        seed=0,
        notes=(),
    ):
        """A `DataSet` from lists of `BoxedImage`. Without `dev`, a part of train becomes it.

        Boxes are cut at the edges of their picture; those without area are left out, which `notes`
        then say.

        Args:
            labels: names of the classes in the order of their ids; None sorts those that are there.
            bounding_box_format: str, how the boxes are given, as in
                `keras.utils.bounding_boxes.convert_format`: `"xyxy"`, `"xywh"`, `"center_xywh"`,
                `"rel_xyxy"`, ...
            image_size: what pictures are to be resized to, (height, width), or an int for the
                longer side. None leaves it to the task.
            notes: tuple of str, what a model's card is to say about the data.

        Example:

        ```python
        import numpy as np
        import keras_attention as ka

        image = np.zeros((20, 30, 3), "uint8")
        cell = ka.data.BoxedImage(image, boxes=[(5, 5, 10, 8)], labels=["cell"])
        data = ka.data.BoxedImage.collect([cell] * 20, bounding_box_format="xywh")
        assert len(data.train) == 18 and data.train[0].boxes == ((5.0, 5.0, 15.0, 13.0),)
        ```
        """
        parts, dropped = [], 0
        for part in (train, dev, test):
            checked = [check_boxes(cls(*x), bounding_box_format) for x in part]
            dropped += sum(count for _, count in checked)
            parts.append([example for example, _ in checked])
        there = {label for part in parts for example in part for label in example.labels}
        labels = tuple(sorted(there) if labels is None else labels)
        if unknown := sorted(there - set(labels)):
            raise ValueError(
                f"The label {unknown[0]!r} is not among labels: {', '.join(map(str, labels))}."
            )
        if any(parts) and not labels:
            raise ValueError("No picture has an object: expected labels, or a box in one of them.")
        if dropped:
            notes = (*notes, f"{dropped} boxes without area are left out")
        options = {"labels": labels, "dev_fraction": dev_fraction, "seed": seed}
        about = {"image_size": image_size}
        return DataSet.from_parts(cls, *parts, **options, notes=tuple(notes), about=about)

    def objects(self):
        """[(label, box, whether it is a crowd)], as `ka.training.score_boxes` takes them."""
        crowds = self.crowds or (False,) * len(self.boxes)
        return list(zip(self.labels, self.boxes, crowds, strict=True))


def check_boxes(example, bounding_box_format=FORMAT):
    """(the `BoxedImage` with boxes in pixels within the picture, how many had no area)."""
    where = "A picture" if example.name is None else f"The picture {example.name}"
    size = example.size
    if size is None:
        size = getattr(example.image, "shape", ())[:2]
    if len(size) != 2:
        raise ValueError(
            f"{where} has no size: a BoxedImage of a file needs size=(height, width), the pixels "
            "that its boxes are in."
        )
    height, width = map(int, size)
    if height < 1 or width < 1:
        raise ValueError(f"{where} is {height} by {width} pixels: expected one or more of each.")
    for box in example.boxes:
        if np.shape(box) != (4,):
            raise ValueError(f"{where} has the box {box!r:.60}: expected four numbers.")
    boxes = np.asarray(example.boxes, "float64") if len(example.boxes) else []
    if len(boxes) != len(example.labels) or len(example.crowds) not in (0, len(boxes)):
        raise ValueError(
            f"{where} has {len(boxes)} boxes, {len(example.labels)} labels and "
            f"{len(example.crowds)} crowds: expected as many of each, or no crowds."
        )
    if not len(boxes):
        return example._replace(boxes=(), labels=(), crowds=(), size=(height, width)), 0
    if not np.isfinite(boxes).all():
        raise ValueError(f"{where} has a box that is not finite: {boxes.tolist()}.")
    if bounding_box_format != FORMAT:
        boxes = convert_boxes(boxes, bounding_box_format, FORMAT, (height, width))
    boxes = np.clip(boxes, 0, [width, height, width, height])
    kept = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1))
    example = example._replace(
        boxes=tuple(tuple(map(float, boxes[k])) for k in kept),
        labels=tuple(str(example.labels[k]) for k in kept),
        crowds=tuple(bool(example.crowds[k]) for k in kept) if any(example.crowds) else (),
        size=(height, width),
    )
    return example, len(boxes) - len(kept)


def turn_boxes(example, orientation):
    """Return a `BoxedImage` in pixels of its picture as EXIF turns it upright.

    Boxes are taken to be of the upright picture already, unless the size is that of the stored one.

    Args:
        example: `BoxedImage` of a file, with its `size` and boxes (x0, y0, x1, y1).
        orientation: int, of EXIF.
    """
    if orientation < SIDEWAYS or example.size[0] == example.size[1]:
        return example
    if tuple(read_image(example.image).shape[:2]) != tuple(example.size[::-1]):
        return example
    return turn_stored_boxes(example, orientation)


def turn_stored_boxes(example, orientation):
    """Turn a `BoxedImage` whose boxes are of the stored pixels into one of the upright picture."""
    boxes = tuple(turn_box(box, orientation, example.size) for box in example.boxes)
    size = example.size[::-1] if orientation >= SIDEWAYS else example.size
    return example._replace(boxes=boxes, size=tuple(size))


def convert_boxes(boxes, source, target, size):
    """Boxes (n, 4) in another of Keras's formats, as NumPy; `size` is (height, width)."""
    from keras import ops, utils

    height, width = size
    found = utils.bounding_boxes.convert_format(
        np.asarray(boxes, "float32"), source=source, target=target, height=height, width=width
    )
    return ops.convert_to_numpy(found)


def detection_batches(
    examples,
    preprocessor,
    batch_size=8,
    *,
    shuffle=False,
    seed=0,
    augment=None,
    drop_remainder=False,
):
    """A `tf.data.Dataset` of (images, labels) batches for `ka.models.object_detector`.

    Pictures are read and resized in the first epoch, and kept where they fit into 4 GiB. Crowds are
    left out.

    Args:
        examples: list of `BoxedImage`, as `BoxedImage.collect` checks them.
        preprocessor: `DetectionPreprocessor`.
        batch_size: int; the last batch may be smaller.
        shuffle: bool, whether every epoch has another order.
        seed: int, of that order, and of the augmentation.
        augment: a function of `ka.data.detection_augmentation()`, for training only.
        drop_remainder: bool, whether a smaller last batch is left out: what Keras's own
            distributions want of several processes.

    Returns:
        A dataset whose cardinality is known: float32 images (B, H, W, C) from 0 to 1, and a dict of
        `"labels"`, int32 (B, M), -1 where there is no object, and `"boxes"`, float32 (B, M, 4),
        middle, width and height (cx, cy, w, h) as shares of the picture's sides.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    image = np.zeros((20, 40, 3), "uint8")
    cell = ka.data.BoxedImage(image, [(10, 5, 30, 15)], ["cell"], size=(20, 40))
    preprocessor = ka.data.DetectionPreprocessor(["cell"], image_size=(10, 20))
    ((images, labels),) = ka.data.detection_batches([cell], preprocessor)
    assert images.shape == (1, 10, 20, 3) and labels["labels"].numpy().tolist() == [[0]]
    assert labels["boxes"].numpy().tolist() == [[[0.5, 0.5, 0.5, 0.5]]]
    ```
    """
    if not examples:
        raise ValueError("examples is empty: there is nothing to make batches of.")
    tf = import_tensorflow("detection_batches")
    shape = (*preprocessor.image_size, preprocessor.channels)
    read = make_picture_reader(examples, preprocessor, shape)
    numbers, boxes = (tf.constant(x) for x in pad_objects(examples, preprocessor.labels.names))
    indices = tf.data.Dataset.range(len(examples))
    if shuffle:
        indices = indices.shuffle(len(examples), seed=seed)
    indices = indices.batch(batch_size, drop_remainder=drop_remainder)
    count = len(indices)
    check_batches(count)

    def gather(_, index):
        pixels = tf.numpy_function(read, [index], "uint8", stateful=False)
        images = tf.cast(tf.ensure_shape(pixels, (None, *shape)), "float32") / 255.0
        labels = {"labels": tf.gather(numbers, index), "boxes": tf.gather(boxes, index)}
        return images, labels

    if augment is None:
        return gather_batches(tf, indices, gather)

    def move(index, number):
        found = augment(*gather(index, index), tf.cast(number, "int32"))
        return set_rows(tf, found, index.shape[0])

    seeds = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).batch(2)
    batches = tf.data.Dataset.zip(indices, seeds).map(move)
    return batches.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)


def make_picture_reader(examples, preprocessor, shape):
    """A function of indices (B,) -> uint8 (B, H, W, C), which remembers what fits into memory."""
    known, most = {}, MOST_BYTES // int(np.prod(shape))

    def load(index):
        if index in known:
            return known[index]
        picture, _ = preprocessor.read(examples[index].image)
        picture = np.rint(picture * 255).astype("uint8")
        if len(known) < most:
            known[index] = picture
        return picture

    def read(indices):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return np.stack(list(pool.map(load, map(int, indices))))

    return read


def pad_objects(examples, names):
    """int32 labels (n, M), -1 where there is no object, and float32 boxes (n, M, 4) as shares.

    Args:
        examples: list of `BoxedImage`.
        names: of the classes.
    """
    ids = {name: k for k, name in enumerate(names)}
    kept = [[(x, box) for x, box, crowd in e.objects() if not crowd] for e in examples]
    most = max(1, *map(len, kept))
    labels = np.full((len(examples), most), -1, "int32")
    boxes = np.zeros((len(examples), most, 4), "float32")
    for i, (example, objects) in enumerate(zip(examples, kept, strict=True)):
        height, width = example.size
        for k, (name, box) in enumerate(objects):
            if name not in ids:
                raise ValueError(f"The label {name!r} is none of the model's: {', '.join(ids)}.")
            left, top, right, bottom = np.array(box) / [width, height, width, height]
            labels[i, k] = ids[name]
            boxes[i, k] = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
    return labels, boxes
