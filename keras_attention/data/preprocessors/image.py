"""`ImagePreprocessor`: pictures to the inputs of a classifier."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.core.checks import check_height_and_width, check_whole_number
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.readers.image_folders import read_image
from keras_attention.data.readers.images import scale_pixels
from keras_attention.data.tokenizers.vocabulary import Labels
from keras_attention.files.manifest import record_files

LABELS = "labels.txt"
MOST_CHANNELS = 1024


@dataclasses.dataclass(frozen=True)
class ImagePreprocessor:
    """Turns pictures into the inputs of `ka.models.vision_transformer`.

    Args:
        labels: `Labels`, or their names.
        image_size: int or (height, width) in pixels, to which a picture is resized.
        channels: int, 1 for grey or 3 for RGB.
        resizing: `Resizing`, how picture files become of this size.

    Calling it on a list of paths, or of arrays (H, W, C), uint8 or floats from 0 to 1, gives
    float32 (B, height, width, channels) from 0 to 1.

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
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))
        owner = "ImagePreprocessor"
        size = check_height_and_width(owner, "image_size", self.image_size)
        object.__setattr__(self, "image_size", tuple(size))
        check_whole_number(owner, "channels", self.channels, most=MOST_CHANNELS)
        self.resizing.check_image_size(self.image_size)

    def __call__(self, pictures, invert=False):
        """Pictures as the model takes them; `invert` swaps black and white."""
        pixels = np.stack([self._read(picture) for picture in pictures])
        return 1.0 - pixels if invert else pixels

    def _read(self, picture):
        if isinstance(picture, str | pathlib.Path):
            if pathlib.Path(picture).is_dir():
                raise ValueError(f"{picture} is a folder: name the picture files in it.")
            if not pathlib.Path(picture).is_file():
                raise ValueError(f"There is no file {picture}: this model wants picture files.")
            mode = "grayscale" if self.channels == 1 else "rgb"
            return read_image(picture, self.image_size, mode, self.resizing)
        pixels = np.asarray(picture)
        if pixels.shape != (*self.image_size, self.channels):
            raise ValueError(
                f"A picture of shape {pixels.shape}: expected {(*self.image_size, self.channels)}, "
                "or the path of a file, which is resized."
            )
        return scale_pixels(pixels)

    def save(self, folder):
        """Writes the labels into `folder`; the sizes are in the task's entries of the manifest."""
        Labels(self.labels.names).save(pathlib.Path(folder) / LABELS)
        record_files(folder, LABELS)
