"""`DetectionPreprocessor`: pictures of any size to the inputs of a detector."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.data.preprocessors.image import ImagePreprocessor
from keras_attention.data.readers.image_folders import decode_picture, resize_picture
from keras_attention.data.readers.images import scale_pixels
from keras_attention.files.io import read_bytes


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

    Example:

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

    def read(self, picture):
        """One picture as the model takes it, and its own (height, width)."""
        return read_picture(picture, self.image_size, self.channels, self.resizing)

    def _read(self, picture):
        return self.read(picture)[0]


def read_picture(picture, image_size, channels, resizing):
    """(float32 (height, width, channels) from 0 to 1 of this size, the picture's own size).

    Args:
        picture: path, bytes of a file, or array (H, W, C), uint8 or floats from 0 to 1.
    """
    mode = "grayscale" if channels == 1 else "rgb"
    if isinstance(picture, str | pathlib.Path):
        if not pathlib.Path(picture).is_file():
            raise ValueError(f"There is no file {picture}: this model wants picture files.")
        pixels = decode_picture(read_bytes(picture), picture, mode)
    elif isinstance(picture, bytes):
        pixels = decode_picture(picture, "A picture", mode)
    else:
        pixels = np.asarray(picture)
        if pixels.ndim != 3 or pixels.shape[2] != channels or not pixels.size:
            raise ValueError(
                f"A picture of shape {pixels.shape}: expected (height, width, {channels})."
            )
        pixels = scale_pixels(pixels)
    return resize_picture(pixels, image_size, resizing), pixels.shape[:2]
