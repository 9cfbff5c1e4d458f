"""Objects as text, and text as objects: a box is four words and its class one (Pix2Seq)."""

import re

import numpy as np

from keras_attention.core.checks import check_whole_number

BINS = 100  # places along a side
MOST_BINS = 1 << 16
_PLACE = re.compile(r"<(\d{1,6})>")


def describe_objects(example, bins=BINS, *, seed=None):
    """Return the objects of a picture as a text, `"<top> <left> <bottom> <right> class"` for each.

    (Chen et al., 2022, *Pix2Seq*, section 2.1.) Places are shares of the picture's sides, rounded
    to one of `bins` numbers. Spaces in the name of a class become `_`. Crowds are left out.

    Args:
        example: `BoxedImage`.
        bins: int, places along a side.
        seed: int, of the order of the objects, which the paper draws anew for each picture; None is
            from top to bottom, and from left to right.

    Returns:
        str, empty where there is no object.

    ```python
    import numpy as np
    import keras_attention as ka

    image = np.zeros((20, 40, 3), "uint8")
    cells = ka.data.BoxedImage(image, [(10, 5, 30, 15)], ["red cell"], size=(20, 40))
    text = ka.data.describe_objects(cells)
    assert text == "<25> <25> <74> <74> red_cell"
    ((label, _, box),) = ka.data.find_objects(text, size=(20, 40), labels=["red cell"])
    assert label == "red cell" and np.allclose(box, (10, 5, 30, 15), atol=0.5)
    ```
    """
    check_whole_number("describe_objects", "bins", bins, least=2, most=MOST_BINS)
    check_class_names(dict.fromkeys(example.labels))
    height, width = example.size
    objects = []
    for label, (left, top, right, bottom), crowd in example.objects():
        if not crowd:
            shares = np.array([top / height, left / width, bottom / height, right / width])
            corners = np.rint(np.clip(shares, 0, 1) * (bins - 1)).astype(int)
            objects.append((*map(int, corners), _join_words(label)))
    objects.sort()
    if seed is not None:
        order = np.random.default_rng(seed).permutation(len(objects))
        objects = [objects[k] for k in order]
    return " ".join(f"<{a}> <{b}> <{c}> <{d}> {label}" for a, b, c, d, label in objects)


def find_objects(text, size, labels, bins=BINS):
    """Return the objects that a text of `describe_objects`, or a model that learnt from them,
    names.

    What is no object is skipped: words in a wrong order, unknown classes, boxes without area.

    Args:
        text: str.
        size: (height, width) of the picture.
        labels: names of the classes.
        bins: int, as they were written with.

    Returns:
        list of (label, score, box): a score is 1.0, for a text has none, and a box is
        (x0, y0, x1, y1) in the picture's pixels. So `ka.training.score_boxes` takes them.
    """
    names = {_join_words(label): label for label in labels}
    height, width = size
    words = text.split()
    objects, corners = [], []
    for word in words:
        if place := _PLACE.fullmatch(word):
            corners.append(min(int(place[1]), bins - 1))
            continue
        if len(corners) == 4 and word in names:
            top, left, bottom, right = np.array(corners) / (bins - 1) * ([height, width] * 2)
            if top < bottom and left < right:
                objects.append((names[word], 1.0, tuple(map(float, (left, top, right, bottom)))))
        corners = []
    return objects


def check_class_names(labels):
    """Refuses classes that a text could not tell apart, or from places."""
    words = {}
    for label in labels:
        word = _join_words(label)
        if _PLACE.fullmatch(word):
            raise ValueError(f"The class {label!r} reads as a place: give it another name.")
        if word in words:
            raise ValueError(f"The classes {words[word]!r} and {label!r} are both written {word}.")
        words[word] = label


def _join_words(label):
    return "_".join(str(label).split())
