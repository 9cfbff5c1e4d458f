"""Images with a label each: in memory, as batches, and augmented."""

import dataclasses

import numpy as np

from keras_attention.core.lazy import keras
from keras_attention.data.columns import Columns, Pixels
from keras_attention.data.dataset import DataSet
from keras_attention.data.splits import hold_out
from keras_attention.files.extras import import_tensorflow

SLACK = 0.01  # that floats may be beyond 0 and 1, as after a bicubic resize


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images and their labels, as they lie in memory.

    Args:
        pixels: (n, H, W, C), uint8 from 0 to 255 or floats from 0 to 1.
        labels: int32 (n,).
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
        """Return a `DataSet` from pairs of arrays. Without `dev`, a part of train becomes it.

        Args:
            train, dev, test: `ImageSplit`, or (pixels, labels), or None.
            labels: tuple of str, the name of every class.
            notes: tuple of str, what a model's card is to say about the data: how it was split, ...

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
        pairs = {"train": train, "dev": dev, "test": test}
        parts = {name: cls.of(pair) for name, pair in pairs.items() if pair is not None}
        if not parts:
            raise ValueError("No images given: pass train, dev or test.")
        if "train" in parts and "dev" not in parts:
            train = parts["train"]
            remaining, held_out = hold_out(len(train), dev_fraction, seed)
            parts |= {"train": train[remaining], "dev": train[held_out]}
        empty = next(iter(parts.values()))[:0]
        parts = [parts.get(name, empty) for name in pairs]
        return DataSet(cls, *parts, labels=tuple(labels), notes=tuple(notes))

    @classmethod
    def of(cls, split):
        """Return an `ImageSplit` as it is, or one of a pair of arrays."""
        return split if isinstance(split, cls) else cls(*split)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, indices):
        """Those at `places`, a slice or indices (n,)."""
        return ImageSplit(self.pixels[indices], self.labels[indices])

    @property
    def image_shape(self):
        """Return (height, width, channels)."""
        return self.pixels.shape[1:]

    def columns(self):
        """Return `Columns`: images float32 (B, H, W, C) from 0 to 1, and labels int32 (B,)."""
        return Columns(Pixels(self.pixels), self.labels, count=len(self))

    def arrays(self, start=0, stop=None):
        """Images `start` to `stop` as float32 from 0 to 1 (n, H, W, C), and their labels (n,)."""
        return scale_pixels(self.pixels[start:stop]), self.labels[start:stop]


def scale_pixels(pixels):
    """Return pixels, uint8 or floats from 0 to 1, as float32 from 0 to 1. Refuse other numbers."""
    if pixels.dtype == np.uint8:
        return pixels.astype("float32") / np.float32(255)
    if pixels.size and not -SLACK <= pixels.min() <= pixels.max() <= 1 + SLACK:
        raise ValueError(
            f"Pixels of {pixels.dtype} from {pixels.min()} to {pixels.max()}: expected uint8, or "
            "floats from 0 to 1. Divide larger ones by their maximum, and replace NaN and infinity."
        )
    return pixels.astype("float32")


def encode_png(picture):
    """Return the bytes of a PNG file of a picture (H, W, 1 or 3), floats from 0 to 1."""
    tf = import_tensorflow("encode_png")
    return tf.io.encode_png(np.rint(picture * 255).astype("uint8")).numpy()


def image_augmentation(
    shift=0.08, flip=False, seed=0, *, rotation=0.0, zoom=0.0, brightness=0.0, contrast=0.0
):
    """Moves every image a little, black coming in, and mirrors half of them if asked to.

    Args:
        shift: float, the farthest move as a share of height and width.
        flip: bool, whether left and right may be exchanged: right for clothes, wrong for digits.
        seed: int.
        rotation: float, the farthest turn either way as a share of a whole one; 0 for none, as
            below.
        zoom: float, how much larger or smaller an image may become, as a share of its size.
        brightness: float, how much may be added to all pixels or taken from them.
        contrast: float, by how much the differences of pixels to their mean may grow or shrink, as
            a share of them.

    Returns:
        A `keras.layers.Pipeline` of Keras's preprocessing layers, for `ka.data.batches(augment=)`.

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
    # Nearest, because between pixels the default would blur small images.
    steps = [
        layers.RandomTranslation(
            shift, shift, fill_mode="constant", interpolation="nearest", **common
        )
    ]
    if flip:
        steps.append(layers.RandomFlip("horizontal", **common))
    if rotation:
        steps.append(layers.RandomRotation(rotation, fill_mode="constant", **common))
    if zoom:
        steps.append(layers.RandomZoom((-zoom, zoom), fill_mode="constant", **common))
    if brightness:
        steps.append(layers.RandomBrightness(brightness, value_range=(0, 1), **common))
    if contrast:
        steps.append(layers.RandomContrast(contrast, value_range=(0, 1), **common))
    return layers.Pipeline(steps)
