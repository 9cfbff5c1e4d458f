"""`Resizing`: how pictures of any size become pictures of one."""

import dataclasses
import math

import numpy as np

from keras_attention.core.checks import check_height_and_width, check_whole_number
from keras_attention.files.fields import MOST_PIXELS

INTERPOLATIONS = ("bilinear", "bicubic", "lanczos3", "nearest")


@dataclasses.dataclass(frozen=True)
class Resizing:
    """A picture is resized, and its centre is cut out.

    Args:
        size: int for the shorter side, the other in proportion; or (height, width), to which
            pictures are stretched. None for the size that is cut out: then nothing is.
        interpolation: `"bilinear"`, `"bicubic"`, `"lanczos3"` or `"nearest"`, with antialiasing, as
            Pillow and torchvision do it.

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
        owner = type(self).__name__
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"{owner}(interpolation={self.interpolation!r}): expected one of "
                f"{', '.join(INTERPOLATIONS)}."
            )
        if isinstance(self.size, list | tuple):
            size = check_height_and_width(owner, "size", tuple(self.size))
            object.__setattr__(self, "size", tuple(size))
        elif self.size is not None:
            check_whole_number(owner, "size", self.size, most=MOST_PIXELS)

    def check_image_size(self, image_size):
        """Refuses a size that cannot be cut out of the resized pictures."""
        smallest = self.choose_size(1, 1, image_size)
        if any(side < least for side, least in zip(smallest, image_size, strict=True)):
            raise ValueError(
                f"{self}: pictures of {smallest[0]} x {smallest[1]} pixels have no "
                f"{image_size[0]} x {image_size[1]} in them. Give a larger size."
            )

    def choose_size(self, height, width, image_size):
        """Return (height, width) that a picture is resized to before the centre is cut out."""
        if self.size is None:
            return tuple(image_size)
        if isinstance(self.size, tuple):
            return self.size
        short = min(height, width)
        return tuple(self.size * side // short for side in (height, width))

    def apply(self, picture, image_size):
        """Return a float32 picture (H, W, C) from 0 to 1 as (height, width, C)."""
        size = self.choose_size(*picture.shape[:2], image_size)
        for length in size:  # the rows, and after a turn the columns
            picture = _resize_rows(picture, length, self.interpolation).swapaxes(0, 1)
        top, left = ((side - cut) // 2 for side, cut in zip(size, image_size, strict=True))
        return picture[top : top + image_size[0], left : left + image_size[1]]

    def config(self):
        """Return the entry in a manifest: all that an app needs to do the same."""
        size = list(self.size) if isinstance(self.size, tuple) else self.size
        return {"interpolation": self.interpolation, "size": size}

    @classmethod
    def read(cls, fields):
        """Reads what `config` gave.

        Args:
            fields: `Fields`.
        """
        if isinstance(fields.values.get("size"), list):
            size = tuple(fields.wholes("size", 2, most=MOST_PIXELS))
        else:
            size = fields.whole("size", most=MOST_PIXELS, default=None)
        return cls(fields.one_of("interpolation", INTERPOLATIONS), size)


def _resize_rows(picture, count, interpolation):
    """Resample the first axis of `picture` (H, W, C) to `count` rows.

    A new row is a weighted mean of the rows around its centre. To make a picture smaller, the
    kernel is stretched, so that every row counts. TensorFlow and Pillow compute the same numbers.
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
    """Compute Keys's cubic kernel with a = -0.5."""
    near, far = (1.5 * x - 2.5) * x * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2.0, 0.0, np.where(x >= 1.0, far, near))


KERNELS = {  # interpolation -> weight of a distance, and the distance where weights end
    "bilinear": (lambda x: np.maximum(1.0 - x, 0.0), 1),
    "bicubic": (_weigh_cubic, 2),
    "lanczos3": (lambda x: np.where(x >= 3.0, 0.0, np.sinc(x) * np.sinc(x / 3.0)), 3),
}
