"""Pictures with boxes around what is in them: in memory, checked, and as batches."""

import typing

import numpy as np

from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.image_folders import read_image
from keras_attention.data.readers.orientation import SIDEWAYS, turn_box

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
        """Return a `DataSet` from lists of `BoxedImage`. Without `dev`, a part of train becomes it.

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
    """Return (the `BoxedImage` with boxes in pixels within the picture, how many had no area)."""
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
    with_area = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1))
    example = example._replace(
        boxes=tuple(tuple(map(float, boxes[k])) for k in with_area),
        labels=tuple(str(example.labels[k]) for k in with_area),
        crowds=tuple(bool(example.crowds[k]) for k in with_area) if any(example.crowds) else (),
        size=(height, width),
    )
    return example, len(boxes) - len(with_area)


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
    converted = utils.bounding_boxes.convert_format(
        np.asarray(boxes, "float32"), source=source, target=target, height=height, width=width
    )
    return ops.convert_to_numpy(converted)
