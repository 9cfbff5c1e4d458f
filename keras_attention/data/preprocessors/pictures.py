"""`PictureOwner`: base of preprocessors that resize images to one size."""

import concurrent.futures
import pathlib

import numpy as np

from keras_attention.core.checks import check_height_and_width, check_whole_number
from keras_attention.data.columns import Computed
from keras_attention.data.readers.image_folders import decode_picture, resize_picture
from keras_attention.data.readers.images import scale_pixels
from keras_attention.files.io import read_bytes
from keras_attention.files.manifest import record_files

LABELS = "labels.txt"
MOST_CHANNELS = 1024
MOST_BYTES = 4 << 30  # memory for resized images


class PictureOwner:
    """Base class of preprocessors for images. Subclasses are dataclasses with these fields.

    Attributes:
        image_size: (height, width) in pixels.
        channels: int, 1 for grayscale or 3 for RGB.
        resizing: `Resizing` that resizes images to `image_size`.
    """

    def check_sizes(self):
        """Validate `image_size` and `channels`, and convert `image_size` to (height, width)."""
        class_name = type(self).__name__
        size = check_height_and_width(class_name, "image_size", self.image_size)
        object.__setattr__(self, "image_size", tuple(size))
        check_whole_number(class_name, "channels", self.channels, most=MOST_CHANNELS)

    @property
    def image_shape(self):
        """tuple, the shape of a model input: (height, width, channels)."""
        return (*self.image_size, self.channels)

    def read(self, picture):
        """Convert one image to a model input, and return (input, original (height, width)).

        `picture` is a path, the bytes of a file, or an array (H, W, C) of uint8, or of floats from
        0 to 1. The input is float32 from 0 to 1. Raise a ValueError if the file is missing, or if
        the array has another shape.
        """
        mode = "grayscale" if self.channels == 1 else "rgb"
        if isinstance(picture, str | pathlib.Path):
            if pathlib.Path(picture).is_dir():
                raise ValueError(f"{picture} is a folder: name the image files in it.")
            if not pathlib.Path(picture).is_file():
                raise ValueError(f"The file {picture} is missing: expected an image file.")
            pixels = decode_picture(read_bytes(picture), picture, mode)
        elif isinstance(picture, bytes):
            pixels = decode_picture(picture, "An image", mode)
        else:
            pixels = np.asarray(picture)
            if pixels.ndim != 3 or pixels.shape[2] != self.channels or not pixels.size:
                raise ValueError(
                    f"An image of shape {pixels.shape}: expected (height, width, {self.channels})."
                )
            pixels = scale_pixels(pixels)
        return resize_picture(pixels, self.image_size, self.resizing), pixels.shape[:2]

    def compute_images(self, pictures, of_examples=None):
        """Return the images of examples as a column for `Columns`: float32 (B, H, W, C).

        Up to 4 GiB of resized images are kept in memory. `pictures` is a list of images, as for
        `read`. `of_examples` are ints (n,), the index of each example's image in this list. None
        means that example k has image k.
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
        """Write the labels into `folder`. The task writes the image size into `manifest.json`."""
        self.labels.save(pathlib.Path(folder) / LABELS)
        record_files(folder, LABELS)
