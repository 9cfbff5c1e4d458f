"""Images with a label each, in three parts."""

import dataclasses
import typing

import numpy as np

from keras_attention.data.holding_out import held_out


class ImageSplit(typing.NamedTuple):
    """Images and their labels, as they lie in memory.

    `pixels` is (n, H, W, C), uint8 from 0 to 255 or floats from 0 to 1; `labels` is int32 (n,).
    """

    pixels: np.ndarray
    labels: np.ndarray

    def arrays(self, start=0, stop=None):
        """Images `start` to `stop` as float32 from 0 to 1 (n, H, W, C), and their labels (n,)."""
        return as_floats(self.pixels[start:stop]), self.labels[start:stop]


def as_floats(pixels):
    """Pixels, uint8 or floats from 0 to 1, as float32 from 0 to 1."""
    scale = 255 if pixels.dtype == np.uint8 else 1
    return pixels.astype("float32") / np.float32(scale)


def split_of(pixels, labels):
    """An `ImageSplit` of arrays, after a check that they are what they should be."""
    pixels, labels = np.asarray(pixels), np.asarray(labels, "int32")
    if pixels.ndim != 4 or len(pixels) != len(labels):
        raise ValueError(
            f"Images of shape {pixels.shape} and labels of shape {labels.shape}: expected "
            "(n, height, width, channels) and (n,)."
        )
    if pixels.dtype != np.uint8 and pixels.size and not 0 <= pixels.min() <= pixels.max() <= 1:
        raise ValueError(
            f"Images of {pixels.dtype} from {pixels.min()} to {pixels.max()}: expected uint8, or "
            "floats from 0 to 1."
        )
    if len(labels) and labels.min() < 0:
        raise ValueError(f"A label is {labels.min()}: labels count from 0.")
    return ImageSplit(pixels, labels)


@dataclasses.dataclass(frozen=True, repr=False)
class Images:
    """An image classification data set in memory. `from_tfds` makes one; so do arrays.

    Args:
        train, dev, test: `ImageSplit`, or a pair of arrays; images (n, H, W, C), uint8 or floats
            from 0 to 1, and int labels (n,).
        labels: tuple of str, the name of every class.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 1), dtype="uint8")
    data = ka.data.Images.from_arrays(
        train=(pixels[:15], np.arange(15) % 2),
        test=(pixels[15:], np.arange(5) % 2),
        labels=["even", "odd"],
        dev_fraction=0.2,
    )
    images, labels = data.dev.arrays()
    assert images.shape == (3, 8, 8, 1) and images.dtype == "float32" and images.max() <= 1
    ```
    """

    train: ImageSplit
    dev: ImageSplit
    test: ImageSplit
    labels: tuple

    @classmethod
    def from_arrays(cls, train=None, dev=None, test=None, *, labels, dev_fraction=0.1, seed=0):
        """Checks pairs of arrays; without `dev`, a part of train becomes it."""
        pairs = {"train": train, "dev": dev, "test": test}
        given = {name: split_of(*pair) for name, pair in pairs.items() if pair is not None}
        if not given:
            raise ValueError("No images given: pass train, dev or test.")
        if "train" in given and "dev" not in given:
            pixels, numbers = given["train"]
            kept, held = held_out(len(numbers), dev_fraction, seed)
            given["train"] = ImageSplit(pixels[kept], numbers[kept])
            given["dev"] = ImageSplit(pixels[held], numbers[held])
        pixels, numbers = next(iter(given.values()))
        none = ImageSplit(pixels[:0], numbers[:0])
        return cls(*(given.get(name, none) for name in pairs), tuple(labels))

    @property
    def image_shape(self):
        """(height, width, channels)."""
        return self.train.pixels.shape[1:]

    def __repr__(self):
        sizes = ", ".join(
            f"{name}={len(getattr(self, name).labels)}" for name in ("train", "dev", "test")
        )
        shape = "x".join(map(str, self.image_shape))
        return f"Images({sizes} images of {shape}, {len(self.labels)} labels)"
