"""`PictureOwner`: what preprocessors share that turn pictures into arrays of one size."""

import concurrent.futures
import pathlib

import numpy as np

from keras_attention.core.checks import check_height_and_width, check_whole_number
from keras_attention.data.columns import Computed
from keras_attention.data.readers.image_folders import decode_picture, resize_picture
from keras_attention.data.readers.images import scale_pixels
from keras_attention.data.tokenizers.vocabulary import Labels
from keras_attention.files.io import read_bytes
from keras_attention.files.manifest import record_files

LABELS = "labels.txt"
MOST_CHANNELS = 1024
MOST_BYTES = 4 << 30  # of resized pictures that are kept in memory


class PictureOwner:
    """A preprocessor of pictures, a dataclass.

    Attributes:
        image_size: (height, width) in pixels.
        channels: int, 1 for grey or 3 for RGB.
        resizing: `Resizing`, how pictures become of this size.
    """

    def check_sizes(self):
        """Checks and sets the size of pictures, and how they become of this size."""
        owner = type(self).__name__
        size = check_height_and_width(owner, "image_size", self.image_size)
        object.__setattr__(self, "image_size", tuple(size))
        check_whole_number(owner, "channels", self.channels, most=MOST_CHANNELS)

    def check_labels(self):
        """Makes `Labels` of the names of labels."""
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))

    @property
    def image_shape(self):
        """(height, width, channels)."""
        return (*self.image_size, self.channels)

    def read(self, picture):
        """Return one picture as the model takes it, and its own (height, width).

        Args:
            picture: path, bytes of a file, or array (H, W, C), uint8 or floats from 0 to 1.
        """
        mode = "grayscale" if self.channels == 1 else "rgb"
        if isinstance(picture, str | pathlib.Path):
            if pathlib.Path(picture).is_dir():
                raise ValueError(f"{picture} is a folder: name the picture files in it.")
            if not pathlib.Path(picture).is_file():
                raise ValueError(f"There is no file {picture}: this model wants picture files.")
            pixels = decode_picture(read_bytes(picture), picture, mode)
        elif isinstance(picture, bytes):
            pixels = decode_picture(picture, "A picture", mode)
        else:
            pixels = np.asarray(picture)
            if pixels.ndim != 3 or pixels.shape[2] != self.channels or not pixels.size:
                raise ValueError(
                    f"A picture of shape {pixels.shape}: expected (height, width, {self.channels})."
                )
            pixels = scale_pixels(pixels)
        return resize_picture(pixels, self.image_size, self.resizing), pixels.shape[:2]

    def compute_images(self, pictures, of_examples=None):
        """Return a column of pictures, float32 (B, H, W, C), which keeps what fits into 4 GiB.

        Args:
            pictures: list of what `read` takes.
            of_examples: ints (n,), which of `pictures` each example has; None for one each.
        """
        stored, most = {}, MOST_BYTES // int(np.prod(self.image_shape))

        def load(index):
            if index in stored:
                return stored[index]
            picture, _ = self.read(pictures[index])
            picture = np.rint(picture * 255).astype("uint8")
            if len(stored) < most:
                stored[index] = picture
            return picture

        def compute(_, chosen):
            indices = chosen if of_examples is None else of_examples[chosen]
            with concurrent.futures.ThreadPoolExecutor() as pool:
                return scale_pixels(np.stack(list(pool.map(load, map(int, indices)))))

        return Computed(compute, (None, *self.image_shape))

    def save(self, folder):
        """Writes the labels into `folder`; the sizes are in the task's entries of the manifest."""
        self.labels.save(pathlib.Path(folder) / LABELS)
        record_files(folder, LABELS)
