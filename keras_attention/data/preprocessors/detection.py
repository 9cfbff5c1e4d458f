"""`DetectionPreprocessor`: pictures of any size to the inputs of a detector."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns
from keras_attention.data.preprocessors.image import ImagePreprocessor


@dataclasses.dataclass(frozen=True)
class DetectionPreprocessor(ImagePreprocessor):
    """Turns pictures into the inputs of `ka.models.object_detector`.

    Pictures are stretched to the model's size, so that boxes as shares of its sides are shares of
    the picture's sides.

    Args:
        labels: `Labels`, or their names.
        image_size: int or (height, width) in pixels, to which a picture is resized.
        channels: int, 1 for grey or 3 for RGB.
        resizing: `Resizing` without a size: its interpolation.

    Calling it on a list of paths, of bytes of files, or of arrays (H, W, C) of any size, uint8 or
    floats from 0 to 1, gives float32 (B, height, width, channels) from 0 to 1.

    ```python
    import numpy as np
    import keras_attention as ka

    preprocessor = ka.data.DetectionPreprocessor(["cell"], image_size=(4, 8), channels=3)
    pixels, size = preprocessor.read(np.full((30, 50, 3), 255, "uint8"))
    assert pixels.shape == (4, 8, 3) and size == (30, 50)
    ```
    """

    def __post_init__(self):
        super().__post_init__()
        if self.resizing.size is not None:
            raise ValueError(
                f"DetectionPreprocessor(resizing={self.resizing}): boxes want whole pictures; give "
                "a Resizing without size."
            )

    def columns(self, examples):
        """Return `Columns` of a list of `BoxedImage`, for `ka.data.batches`. Crowds are left out.

        Labels are a dict of `"labels"`, int32 (B, M), -1 where there is no object, and `"boxes"`,
        float32 (B, M, 4), middle, width and height (cx, cy, w, h) as shares of the picture's sides.
        """
        images = self.compute_images([example.image for example in examples])
        numbers, boxes = pad_objects(examples, self.labels.names)
        return Columns(images, {"labels": numbers, "boxes": boxes}, count=len(examples))

    def _read(self, picture):
        return self.read(picture)[0]


def pad_objects(examples, names):
    """int32 labels (n, M), -1 where there is no object, and float32 boxes (n, M, 4) as shares.

    Args:
        examples: list of `BoxedImage`.
        names: of the classes.
    """
    ids = {name: k for k, name in enumerate(names)}
    objects_of_each = [[(x, box) for x, box, crowd in e.objects() if not crowd] for e in examples]
    most = max(1, *map(len, objects_of_each))
    labels = np.full((len(examples), most), -1, "int32")
    boxes = np.zeros((len(examples), most, 4), "float32")
    for i, (example, objects) in enumerate(zip(examples, objects_of_each, strict=True)):
        height, width = example.size
        for k, (name, box) in enumerate(objects):
            if name not in ids:
                raise ValueError(f"The label {name!r} is none of the model's: {', '.join(ids)}.")
            left, top, right, bottom = np.array(box) / [width, height, width, height]
            labels[i, k] = ids[name]
            boxes[i, k] = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
    return labels, boxes
