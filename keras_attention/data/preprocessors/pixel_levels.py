"""`PixelLevelsPreprocessor`: converts images to token ids, one brightness level each, and back."""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns
from keras_attention.data.preprocessors.pictures import PictureOwner
from keras_attention.data.readers.images import scale_pixels
from keras_attention.data.tokenizers.vocabulary import Labels

MOST_LEVELS = 256


@dataclasses.dataclass(frozen=True)
class PixelLevelsPreprocessor(PictureOwner):
    """Converts images to the tokens of a language model of pixels, and tokens to images.

    The method follows Parmar et al. (2018, *Image Transformer*, section 3) and Chen et al. (2020,
    *Image GPT*). The tokens of an image are its class, followed by the brightness level of each
    pixel, row by row from the top. The levels of a pixel's channels follow one another. The first
    ids are the levels, starting at 0, and the next ids are the classes.

    Call the object on images (n, H, W, C), uint8 or floats from 0 to 1, and the indices of their
    classes, ints (n,), to get ids, int32 (n, 1 + H · W · C).

    Args:
        labels: `Labels` of the classes, or their names.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        num_levels: int, the number of brightness levels, from 2 to 256.

    ```python
    import numpy as np
    import keras_attention as ka

    preprocessor = ka.data.PixelLevelsPreprocessor(["day", "night"], 2, 1, num_levels=5)
    ids = preprocessor(np.array([[[[0.0], [0.5]], [[0.25], [1.0]]]]), [1])
    assert ids.tolist() == [[6, 0, 2, 1, 4]]
    pictures = preprocessor.pictures(ids[:, 1:])
    assert pictures.dtype == "uint8" and pictures[0, :, :, 0].tolist() == [[0, 128], [64, 255]]
    ```
    """

    labels: Labels
    image_size: tuple
    channels: int = 1
    num_levels: int = 16

    def __post_init__(self):
        object.__setattr__(self, "labels", Labels.of(self.labels))
        self.check_sizes()
        class_name = "PixelLevelsPreprocessor"
        check_whole_number(class_name, "num_levels", self.num_levels, least=2, most=MOST_LEVELS)

    @property
    def grid(self):
        """tuple (rows, columns), the grid of the levels, with a column for each channel."""
        height, width = self.image_size
        return height, width * self.channels

    @property
    def count(self):
        """int, the number of values in an image, one for each pixel and channel."""
        return self.grid[0] * self.grid[1]

    @property
    def vocabulary_size(self):
        """int, the number of token ids: one for each brightness, and one for each class."""
        return self.num_levels + len(self.labels)

    def class_ids(self, numbers):
        """Return the token ids, int32 (n, 1), of the class indices `numbers`, ints (n,)."""
        return self.num_levels + np.asarray(numbers, "int32").reshape(-1, 1)

    def __call__(self, images, numbers):
        pixels = scale_pixels(np.asarray(images))
        if pixels.shape[1:] != self.image_shape:
            raise ValueError(f"Images of shape {pixels.shape[1:]}: expected {self.image_shape}.")
        levels = np.rint(pixels * (self.num_levels - 1)).astype("int32")
        return np.concatenate([self.class_ids(numbers), levels.reshape(len(pixels), -1)], axis=1)

    def columns(self, split):
        """Convert `split`, an `ImageSplit`, to `Columns` for `ka.data.batches`.

        With N = H · W · C, inputs are ids, int32 (B, N): the class and all levels but the last.
        Labels are all N levels.
        """
        ids = self(split.pixels, split.labels)
        return Columns(ids[:, :-1], ids[:, 1:], count=len(split))

    def pictures(self, levels):
        """Convert levels, ints (n, H · W · C), to images, uint8 (n, H, W, C)."""
        pixels = np.clip(np.asarray(levels), 0, self.num_levels - 1) / (self.num_levels - 1)
        return np.rint(255 * pixels).astype("uint8").reshape(-1, *self.image_size, self.channels)
