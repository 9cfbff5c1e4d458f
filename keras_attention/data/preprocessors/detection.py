"""`DetectionPreprocessor`: converts images of any size to the inputs of a detector."""

import dataclasses

import numpy as np

from keras_attention.data.columns import Columns, pad_rows
from keras_attention.data.preprocessors.image import ImagePreprocessor


@dataclasses.dataclass(frozen=True)
class DetectionPreprocessor(ImagePreprocessor):
    """Converts images to the inputs of `ka.models.object_detector`.

    Call the object on a list of images to get float32 (B, height, width, channels) from 0 to 1. An
    image is a path, the bytes of a file, or an array (H, W, C) of any size, uint8 or floats from 0
    to 1. Images are stretched to one size, so boxes keep their relative positions.

    Args:
        labels: `Labels`, or the names of the classes.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        resizing: `Resizing` that sets the interpolation. Its `size` must be None.

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
                f"DetectionPreprocessor(resizing={self.resizing}): boxes need whole images. "
                "Give a Resizing without size."
            )

    def columns(self, examples):
        """Convert `examples`, a list of `BoxedImage`, to `Columns` for `ka.data.batches`.

        Labels are a dict. `"labels"` are the class ids, int32 (B, M) for at most M objects in an
        image, and -1 after the last object. `"boxes"` are float32 (B, M, 4): center x, center y,
        width and height, as fractions of the image's width and height. Boxes of crowds (many
        objects in one box) are left out.
        """
        images = self.compute_images([example.image for example in examples])
        numbers, boxes = pad_objects(examples, self.labels)
        return Columns(images, {"labels": numbers, "boxes": boxes}, count=len(examples))

    def _read(self, picture):
        return self.read(picture)[0]


def pad_objects(examples, labels):
    """Return padded class ids (B, M) and boxes (B, M, 4) of `examples`, a list of `BoxedImage`.

    `labels` are `Labels`. M is the greatest number of objects in one image. Boxes are
    (center x, center y, width, height), as fractions of the image's width and height.
    """
    rows, boxes = [], []
    for example in examples:
        objects = [(label, box) for label, box, crowd in example.objects() if not crowd]
        rows.append(labels.ids([label for label, _ in objects]))
        corners = np.array([box for _, box in objects], "float64").reshape(-1, 2, 2)
        first, last = np.moveaxis(corners / example.size[::-1], 1, 0)
        boxes.append(np.concatenate([(first + last) / 2, last - first], axis=1))
    return pad_rows(rows, -1, least=1), pad_rows(boxes, least=1, shape=(4,), dtype="float32")
