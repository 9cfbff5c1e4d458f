"""Images with boxes around their objects."""

import typing

import numpy as np

from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.image_folders import read_image
from keras_attention.data.readers.orientation import SIDEWAYS, turn_box

FORMAT = "xyxy"  # Keras's name for boxes as (left, top, right, bottom) in pixels


class BoxedImage(typing.NamedTuple):
    """An image and its objects.

    Attributes:
        image: path of a file, bytes of a file, or array (H, W, C), uint8 or floats from 0 to 1.
        boxes: tuple of (x0, y0, x1, y1), the left, top, right and bottom sides in pixels.
        labels: tuple of str, the class of each box.
        crowds: tuple of bool, whether each box contains a crowd (many objects in one box), which
            COCO does not score. Empty if no box is a crowd.
        size: (height, width) of the image in the pixels that boxes refer to. None uses the size of
            the array `image`.
        name: an identifier of the image, used in results and error messages.
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
        """Make a `DataSet` from lists of `BoxedImage` for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train` is moved to it. Boxes are
        clipped to their image. Boxes without area are left out, and `notes` states their number.

        Args:
            train, dev, test: lists of `BoxedImage`, or of tuples with the same fields.
            labels: the names of the classes in the order of their ids. None sorts the classes of
                all boxes.
            bounding_box_format: str, the format of the boxes, as in
                `keras.utils.bounding_boxes.convert_format`: `"xyxy"`, `"xywh"`, `"center_xywh"`,
                `"rel_xyxy"`, ...
            image_size: the size to resize images to, (height, width), or an int for the longer
                side. None lets the task choose.
            dev_fraction: float, the share of train that becomes dev if dev is empty.
            seed: int, for the random choice of these examples.
            notes: tuple of str, remarks about the data for a model card.

        Raises:
            ValueError: a box is damaged, an object has a label that is not in `labels`, or no image
                has an object.

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
        names = {label for part in parts for example in part for label in example.labels}
        labels = tuple(sorted(names) if labels is None else labels)
        if unknown := sorted(names - set(labels)):
            raise ValueError(
                f"The label {unknown[0]!r} is not among labels: {', '.join(map(str, labels))}."
            )
        if any(parts) and not labels:
            raise ValueError("No image has an object: expected labels, or a box in one of them.")
        if dropped:
            notes = (*notes, f"{dropped} boxes without area are left out")
        options = {"labels": labels, "dev_fraction": dev_fraction, "seed": seed}
        about = {"image_size": image_size}
        return DataSet.from_parts(cls, *parts, **options, notes=tuple(notes), about=about)

    def objects(self):
        """Return the objects, [(label, box, is a crowd)], as `ka.training.score_boxes` expects."""
        crowds = self.crowds or (False,) * len(self.boxes)
        return list(zip(self.labels, self.boxes, crowds, strict=True))


def check_boxes(example, bounding_box_format=FORMAT):
    """Convert and check the boxes of `example`, a `BoxedImage`.

    Return (new `BoxedImage`, number of boxes without area). `bounding_box_format` is Keras's name
    for the meaning of the four numbers of a box, such as `"xyxy"`. In the result, boxes are
    converted from `bounding_box_format` to pixels and clipped to the image. Boxes without area are
    left out. Raise a ValueError if the size of the image is unknown, or a box is damaged.
    """
    name = "An image" if example.name is None else f"The image {example.name}"
    size = example.size
    if size is None:
        size = getattr(example.image, "shape", ())[:2]
    if len(size) != 2:
        raise ValueError(
            f"{name} has no size: give size=(height, width), the pixels that boxes count."
        )
    height, width = map(int, size)
    if height < 1 or width < 1:
        raise ValueError(f"{name} is {height} by {width} pixels: expected one or more of each.")
    for box in example.boxes:
        if np.shape(box) != (4,):
            raise ValueError(f"{name} has the box {box!r:.60}: expected four numbers.")
    boxes = np.asarray(example.boxes, "float64").reshape(-1, 4)
    if len(boxes) != len(example.labels) or len(example.crowds) not in (0, len(boxes)):
        raise ValueError(
            f"{name} has {len(boxes)} boxes, {len(example.labels)} labels and "
            f"{len(example.crowds)} crowds: expected as many of each, or no crowds."
        )
    if not np.isfinite(boxes).all():
        raise ValueError(f"{name} has a box that is not finite: {boxes.tolist()}.")
    if len(boxes) and bounding_box_format != FORMAT:
        boxes = convert_boxes(boxes, bounding_box_format, FORMAT, (height, width))
    boxes = np.clip(boxes, 0, [width, height, width, height])
    with_area = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1))
    example = example._replace(
        boxes=tuple(tuple(map(float, boxes[k])) for k in with_area),
        labels=tuple(str(example.labels[k]) for k in with_area),
        crowds=tuple(bool(example.crowds[k]) for k in with_area) if any(example.crowds) else (),
        size=(height, width),
    )
    return example, len(boxes) - len(with_area)


def turn_boxes(example, orientation):
    """Return a copy of `example`, a `BoxedImage`, whose boxes fit the upright image.

    Images are shown rotated by their EXIF `orientation` (1 to 8). Boxes usually refer to the
    upright image already. The boxes are rotated only if `example.size` is the size of the image as
    stored.
    """
    if orientation < SIDEWAYS or example.size[0] == example.size[1]:
        return example
    if tuple(read_image(example.image).shape[:2]) != tuple(example.size[::-1]):
        return example
    return turn_stored_boxes(example, orientation)


def turn_stored_boxes(example, orientation):
    """Rotate the boxes and the size of `example`, a `BoxedImage`, and return the result.

    `orientation` is the EXIF orientation, 1 to 8. The boxes refer to the image as stored. The image
    file stays unchanged.
    """
    boxes = tuple(turn_box(box, orientation, example.size) for box in example.boxes)
    size = example.size[::-1] if orientation >= SIDEWAYS else example.size
    return example._replace(boxes=boxes, size=tuple(size))


def convert_boxes(boxes, source, target, size):
    """Convert boxes, a NumPy array (n, 4), between Keras's formats.

    `source` and `target` are names such as `"xyxy"`. `size` is the (height, width) of the image.
    """
    from keras import ops, utils

    height, width = size
    converted = utils.bounding_boxes.convert_format(
        np.asarray(boxes, "float32"), source=source, target=target, height=height, width=width
    )
    return ops.convert_to_numpy(converted)
