"""`Resizing`: resizes images of any size to the input size of a model."""

import dataclasses
import math

import numpy as np

from keras_attention.core.checks import check_height_and_width, check_whole_number
from keras_attention.files.fields import MOST_PIXELS

INTERPOLATIONS = ("bilinear", "bicubic", "lanczos3", "nearest")


@dataclasses.dataclass(frozen=True)
class Resizing:
    """Resizes an image, and crops its center if `size` is set. Image preprocessors have one.

    `apply(image, final_size)` returns the image in the final size, the input size of a model.

    Args:
        interpolation: `"bilinear"`, `"bicubic"`, `"lanczos3"` or `"nearest"`. All but the last use
            antialiasing, as in Pillow and torchvision.
        size: the size before cropping. An int is the shorter side, and the aspect ratio is kept.
            (height, width) stretches the image. None stretches it to the final size without
            cropping.

    ```python
    import numpy as np
    import keras_attention as ka

    resizing = ka.data.Resizing(size=4, interpolation="bicubic")
    assert resizing.choose_size(8, 12, (3, 3)) == (4, 6)
    picture = ka.data.Resizing("bilinear").apply(np.ones((8, 12, 3), "float32"), (4, 4))
    assert picture.shape == (4, 4, 3)
    ```
    """

    interpolation: str = "bilinear"
    size: int | tuple | None = None

    def __post_init__(self):
        class_name = type(self).__name__
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"{class_name}(interpolation={self.interpolation!r}): expected one of "
                f"{', '.join(INTERPOLATIONS)}."
            )
        if isinstance(self.size, list | tuple):
            size = check_height_and_width(class_name, "size", tuple(self.size))
            object.__setattr__(self, "size", tuple(size))
        elif self.size is not None:
            check_whole_number(class_name, "size", self.size, most=MOST_PIXELS)

    def check_image_size(self, image_size):
        """Raise a ValueError if resized images can be smaller than `image_size`."""
        smallest = self.choose_size(1, 1, image_size)
        if any(side < least for side, least in zip(smallest, image_size, strict=True)):
            raise ValueError(
                f"{self}: images of {smallest[0]} x {smallest[1]} pixels are smaller than "
                f"{image_size[0]} x {image_size[1]}. Give a larger size."
            )

    def choose_size(self, height, width, image_size):
        """Return the (height, width) to resize an image to, before its center is cropped.

        `height` and `width` are the size of the image now. `image_size` is its final size.
        """
        if self.size is None:
            return tuple(image_size)
        if isinstance(self.size, tuple):
            return self.size
        short = min(height, width)
        return tuple(self.size * side // short for side in (height, width))

    def apply(self, picture, image_size):
        """Resize and crop a float32 image (H, W, C) to `image_size`, (height, width).

        `picture` is the image. Values may lie slightly outside the range of the image, as usual in
        bicubic interpolation.
        """
        size = self.choose_size(*picture.shape[:2], image_size)
        for length in size:  # the rows first, then the columns
            picture = _resize_rows(picture, length, self.interpolation).swapaxes(0, 1)
        top, left = ((side - cut) // 2 for side, cut in zip(size, image_size, strict=True))
        return picture[top : top + image_size[0], left : left + image_size[1]]

    def config(self):
        """Return the entry of `manifest.json` from which an app can resize in the same way."""
        size = list(self.size) if isinstance(self.size, tuple) else self.size
        return {"interpolation": self.interpolation, "size": size}

    @classmethod
    def read(cls, fields):
        """Make a `Resizing` from `fields`, an entry of `manifest.json` that `config` returned."""
        if isinstance(fields.values.get("size"), list):
            size = tuple(fields.wholes("size", 2, most=MOST_PIXELS))
        else:
            size = fields.whole("size", most=MOST_PIXELS, default=None)
        return cls(fields.one_of("interpolation", INTERPOLATIONS), size)


def _resize_rows(picture, count, interpolation):
    """Resample the first axis of an image (H, W, C) to `count` rows, as TensorFlow and Pillow do.

    Each new row is a weighted mean of the old rows around its center. For downsampling, the kernel
    is stretched so that every old row contributes (antialiasing).
    """
    height, shape = len(picture), picture.shape[1:]
    centres = (np.arange(count) + 0.5) * height / count
    if interpolation == "nearest":
        return picture[centres.astype(int)]
    kernel, radius = KERNELS[interpolation]
    stretch = max(height / count, 1.0)
    rows, flat = [], picture.reshape(height, -1)
    for centre in centres:
        first = max(math.ceil(centre - radius * stretch - 0.5), 0)
        last = min(math.floor(centre + radius * stretch - 0.5), height - 1)
        weights = kernel(np.abs(np.arange(first, last + 1) + 0.5 - centre) / stretch)
        weights = (weights / weights.sum()).astype("float32")
        rows.append(weights @ flat[first : last + 1])
    return np.stack(rows).reshape(count, *shape)


def _weigh_cubic(x):
    """Compute the weights of bicubic interpolation (Keys, a = -0.5) at distances `x` in pixels."""
    near, far = (1.5 * x - 2.5) * x * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2.0, 0.0, np.where(x >= 1.0, far, near))


KERNELS = {  # interpolation -> function from distance to weight, greatest distance with a weight
    "bilinear": (lambda x: np.maximum(1.0 - x, 0.0), 1),
    "bicubic": (_weigh_cubic, 2),
    "lanczos3": (lambda x: np.where(x >= 3.0, 0.0, np.sinc(x) * np.sinc(x / 3.0)), 3),
}
