"""Images with one label each: in memory, and augmentation."""

import dataclasses

import numpy as np

from keras_attention.core.lazy import keras
from keras_attention.data.columns import Columns, Pixels
from keras_attention.data.dataset import DataSet
from keras_attention.data.splits import add_dev
from keras_attention.files.extras import import_tensorflow

SLACK = 0.01  # how far floats may exceed the range 0 to 1, as after bicubic resizing


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images and their labels, in memory.

    Args:
        pixels: (n, H, W, C), uint8 from 0 to 255 or floats from 0 to 1.
        labels: int32 (n,), the index of each image's class.
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __post_init__(self):
        pixels, labels = np.asarray(self.pixels), np.asarray(self.labels, "int32")
        if pixels.ndim != 4 or len(pixels) != len(labels):
            raise ValueError(
                f"Images of shape {pixels.shape} and labels of shape {labels.shape}: expected "
                "(n, height, width, channels) and (n,)."
            )
        if pixels.dtype != np.uint8 and pixels.size and not 0 <= pixels.min() <= pixels.max() <= 1:
            raise ValueError(
                f"Images of {pixels.dtype} from {pixels.min()} to {pixels.max()}: expected uint8, "
                "or floats from 0 to 1."
            )
        if len(labels) and labels.min() < 0:
            raise ValueError(f"A label is {labels.min()}: labels count from 0.")
        object.__setattr__(self, "pixels", pixels)
        object.__setattr__(self, "labels", labels)

    @classmethod
    def collect(
        cls, train=None, dev=None, test=None, *, labels, dev_fraction=0.1, seed=0, notes=()
    ):
        """Make a `DataSet` from pairs of arrays for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train` is moved to it.

        Args:
            train, dev, test: `ImageSplit`, or (pixels, labels), or None.
            labels: tuple of str, the name of every class.
            dev_fraction: float, the share of train that becomes dev if dev is None.
            seed: int, for the random choice of these images.
            notes: tuple of str, remarks about the data for a model card.

        Raises:
            ValueError: all three splits are None.

        ```python
        import numpy as np
        import keras_attention as ka

        pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 1), dtype="uint8")
        data = ka.data.ImageSplit.collect(
            train=(pixels[:15], np.arange(15) % 2),
            test=(pixels[15:], np.arange(5) % 2),
            labels=["even", "odd"],
            dev_fraction=0.2,
        )
        images, labels = data.dev.arrays()
        assert images.shape == (3, 8, 8, 1) and images.dtype == "float32" and images.max() <= 1
        ```
        """
        parts = [pair if pair is None else cls.of(pair) for pair in (train, dev, test)]
        empty = next((part[:0] for part in parts if part is not None), None)
        if empty is None:
            raise ValueError("No images given: pass train, dev or test.")
        train, dev_split, test = (empty if part is None else part for part in parts)
        if dev is None:
            train, dev_split = add_dev(train, dev_split, dev_fraction=dev_fraction, seed=seed)
        return DataSet(cls, train, dev_split, test, labels=tuple(labels), notes=tuple(notes))

    @classmethod
    def of(cls, split):
        """Return `split`, an `ImageSplit`, or make an `ImageSplit` from a pair of arrays."""
        return split if isinstance(split, cls) else cls(*split)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, indices):
        """Return an `ImageSplit` with the images at a slice or at indices (n,)."""
        return ImageSplit(self.pixels[indices], self.labels[indices])

    @property
    def image_shape(self):
        """tuple, the (height, width, channels) of each image."""
        return self.pixels.shape[1:]

    def columns(self):
        """Return `Columns` for `ka.data.batches`: images (B, H, W, C) and labels (B,)."""
        return Columns(Pixels(self.pixels), self.labels, count=len(self))

    def arrays(self, start=0, stop=None):
        """Return images `start` to `stop`, float32 (n, H, W, C) from 0 to 1, and their labels (n,).

        A `stop` of None means the end.
        """
        return scale_pixels(self.pixels[start:stop]), self.labels[start:stop]


def scale_pixels(pixels):
    """Convert pixels, uint8 or floats from 0 to 1, to float32 from 0 to 1.

    Raise a ValueError for values outside this range.
    """
    if pixels.dtype == np.uint8:
        return pixels.astype("float32") / np.float32(255)
    if pixels.size and not -SLACK <= pixels.min() <= pixels.max() <= 1 + SLACK:
        raise ValueError(
            f"Pixels of {pixels.dtype} from {pixels.min()} to {pixels.max()}: expected uint8, or "
            "floats from 0 to 1. Divide larger ones by their maximum, and replace NaN and infinity."
        )
    return pixels.astype("float32")


def encode_png(picture):
    """Encode `picture` (H, W, 1 or 3), floats from 0 to 1, as the bytes of a PNG file."""
    tf = import_tensorflow("encode_png")
    return tf.io.encode_png(np.rint(picture * 255).astype("uint8")).numpy()


def image_augmentation(
    shift=0.08, flip=False, seed=0, *, rotation=0.0, zoom=0.0, brightness=0.0, contrast=0.0
):
    """Return a `keras.layers.Pipeline` that augments images at random, for `ka.data.batches`.

    Areas that translation, rotation or zoom move into the image are filled with black.

    Args:
        shift: float, the maximum translation as a share of height and width.
        flip: bool, whether to flip half of the images horizontally. Not suitable for digits, for
            example.
        seed: int, the random seed.
        rotation: float, the maximum rotation in either direction, as a fraction of a full turn.
        zoom: float, the maximum relative change in size.
        brightness: float, the maximum value that is added to all pixels or subtracted from them.
        contrast: float, the maximum relative change in contrast, that is, in each pixel's
            difference from the mean.

    ```python
    import numpy as np
    import keras_attention as ka

    pixels = np.full((4, 8, 8, 1), 255, "uint8")
    augment = ka.data.image_augmentation(shift=0.25, flip=True)
    split = ka.data.ImageSplit(pixels, np.zeros(4))
    images, _ = next(iter(ka.data.batches(split, batch_size=4, augment=augment)))
    assert set(np.unique(images)) == {0.0, 1.0}
    ```
    """
    layers = keras.layers
    common = {"data_format": "channels_last", "seed": seed}
    # The default interpolation would blur small images.
    fill = {"fill_mode": "constant", **common}
    steps = [layers.RandomTranslation(shift, shift, interpolation="nearest", **fill)]
    if flip:
        steps.append(layers.RandomFlip("horizontal", **common))
    if rotation:
        steps.append(layers.RandomRotation(rotation, **fill))
    if zoom:
        steps.append(layers.RandomZoom((-zoom, zoom), **fill))
    if brightness:
        steps.append(layers.RandomBrightness(brightness, value_range=(0, 1), **common))
    if contrast:
        steps.append(layers.RandomContrast(contrast, value_range=(0, 1), **common))
    return layers.Pipeline(steps)
