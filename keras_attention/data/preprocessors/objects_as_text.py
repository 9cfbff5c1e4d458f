"""Objects in an image as text and back: four words for a box and one for its class (Pix2Seq)."""

import re

import numpy as np

from keras_attention.core.checks import check_whole_number

BINS = 100  # positions along a side
MOST_BINS = 1 << 16
_PLACE = re.compile(r"<(\d{1,6})>")


def describe_objects(example, bins=BINS, *, seed=None):
    """Return the objects in an image as text, `"<top> <left> <bottom> <right> class"` for each.

    A model can then detect objects by generating text (Chen et al., 2022, *Pix2Seq*, section 2.1).
    Each coordinate is divided by the image height or width, and rounded to an int below `bins`.
    Spaces in the name of a class are replaced by `_`. Boxes of crowds are left out. The text is
    empty if the image has no objects.

    Args:
        example: `BoxedImage`.
        bins: int, the number of positions along a side.
        seed: int, for a random order of the objects. The paper uses a different random order for
            each image. None sorts the objects from top to bottom, then from left to right.

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
    """Convert a text in the format of `describe_objects` to a list of objects.

    An object is a tuple (name of its class, score, box), as `ka.training.score_boxes` expects. The
    score is always 1.0. A box is (x0, y0, x1, y1) in pixels of the image. Objects whose words are
    in the wrong order, with unknown classes or with boxes without area are skipped.

    Args:
        text: str, the text, such as the output of a model.
        size: (height, width) of the image.
        labels: list of str, the names of the classes.
        bins: int, the number of steps into which the text divides the height and the width of an
            image, the same as in `describe_objects`.
    """
    names = {_join_words(label): label for label in labels}
    height, width = size
    objects, corners = [], []
    for word in text.split():
        if match := _PLACE.fullmatch(word):
            corners.append(min(int(match[1]), bins - 1))
            continue
        if len(corners) == 4 and word in names:
            top, left, bottom, right = np.array(corners) / (bins - 1) * ([height, width] * 2)
            if top < bottom and left < right:
                objects.append((names[word], 1.0, tuple(map(float, (left, top, right, bottom)))))
        corners = []
    return objects


def check_class_names(labels):
    """Raise a ValueError if any of `labels` is ambiguous in the format of `describe_objects`."""
    words = {}
    for label in labels:
        word = _join_words(label)
        if _PLACE.fullmatch(word):
            raise ValueError(f"The class {label!r} looks like a position: give it another name.")
        if word in words:
            raise ValueError(f"The classes {words[word]!r} and {label!r} are both written {word}.")
        words[word] = label


def _join_words(label):
    return "_".join(str(label).split())
