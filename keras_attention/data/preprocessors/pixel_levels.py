"""`PixelLevelsPreprocessor`: pictures as token ids, a level for each pixel, and back."""

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
    """Turns pictures into the tokens of a language model of pixels.

    (Parmar et al., 2018, *Image Transformer*, section 3; Chen et al., 2020, *Image GPT*.)

    A row of tokens is the picture's class, and then the level of each pixel, row by row from the
    top, in colour those of each channel one after another. The ids from 0 are the levels, and the
    classes stand behind them.

    Args:
        labels: `Labels` of the classes, or their names.
        image_size: int or (height, width) in pixels.
        channels: int, 1 for grey or 3 for RGB.
        num_levels: int, how many levels of brightness there are, 2 to 256.

    Calling it on images (n, H, W, C), uint8 or floats from 0 to 1, and their classes, ints (n,),
    gives ids int32 (n, 1 + H · W · C).

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
        self.check_labels()
        self.check_sizes()
        owner = "PixelLevelsPreprocessor"
        check_whole_number(owner, "num_levels", self.num_levels, least=2, most=MOST_LEVELS)

    @property
    def grid(self):
        """Return (rows, columns) of the levels of a picture.

        Those of a pixel are neighbours in a row.
        """
        height, width = self.image_size
        return height, width * self.channels

    @property
    def count(self):
        """int, how many levels a picture has."""
        return self.grid[0] * self.grid[1]

    @property
    def vocabulary_size(self):
        """int, how many ids there are."""
        return self.num_levels + len(self.labels)

    def class_ids(self, numbers):
        """Return the ids int32 (n, 1) of classes, ints (n,)."""
        return self.num_levels + np.asarray(numbers, "int32").reshape(-1, 1)

    def __call__(self, images, numbers):
        pixels = scale_pixels(np.asarray(images))
        if pixels.shape[1:] != (*self.image_size, self.channels):
            raise ValueError(
                f"Pictures of shape {pixels.shape[1:]}: expected "
                f"{(*self.image_size, self.channels)}."
            )
        levels = np.rint(pixels * (self.num_levels - 1)).astype("int32")
        return np.concatenate([self.class_ids(numbers), levels.reshape(len(pixels), -1)], axis=1)

    def columns(self, split):
        """Return `Columns` of an `ImageSplit`.

        Ids int32 (B, N) of the class and all levels but the last.

        Labels are the N levels, where N is H · W · C.
        """
        ids = self(split.pixels, split.labels)
        return Columns(ids[:, :-1], ids[:, 1:], count=len(split))

    def pictures(self, levels):
        """Pictures uint8 (n, H, W, C) of their levels, ints (n, H · W · C)."""
        pixels = np.clip(np.asarray(levels), 0, self.num_levels - 1) / (self.num_levels - 1)
        return np.rint(255 * pixels).astype("uint8").reshape(-1, *self.image_size, self.channels)
