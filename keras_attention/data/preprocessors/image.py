"""`ImagePreprocessor`: converts images to the inputs of a classifier."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.data.preprocessors.pictures import PictureOwner
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.readers.images import scale_pixels
from keras_attention.data.tokenizers.vocabulary import Labels


@dataclasses.dataclass(frozen=True)
class ImagePreprocessor(PictureOwner):
    """Converts images to the inputs of `ka.models.vision_transformer`.

    Call the object on a list of images to get float32 (B, height, width, channels) from 0 to 1. An
    image is a path, or an array (height, width, channels), uint8 or floats from 0 to 1.

    Args:
        labels: `Labels`, or the names of the classes.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        resizing: `Resizing` that resizes image files to `image_size`.

    ```python
    import numpy as np
    import keras_attention as ka

    preprocessor = ka.data.ImagePreprocessor(["day", "night"], image_size=4, channels=3)
    pixels = preprocessor([np.full((4, 4, 3), 255, "uint8")])
    assert pixels.shape == (1, 4, 4, 3) and pixels.min() == 1.0
    ```
    """

    labels: Labels
    image_size: tuple
    channels: int = 3
    resizing: Resizing = Resizing()

    def __post_init__(self):
        object.__setattr__(self, "labels", Labels.of(self.labels))
        self.check_sizes()
        self.resizing.check_image_size(self.image_size)

    def __call__(self, pictures, invert=False):
        """Convert a list of images to model inputs. `invert` swaps black and white."""
        pixels = np.stack([self._read(picture) for picture in pictures])
        return 1.0 - pixels if invert else pixels

    def _read(self, picture):
        if isinstance(picture, str | pathlib.Path):
            return self.read(picture)[0]
        pixels = np.asarray(picture)
        if pixels.shape != self.image_shape:
            raise ValueError(
                f"An image of shape {pixels.shape}: expected {self.image_shape}, or an image file."
            )
        return scale_pixels(pixels)
