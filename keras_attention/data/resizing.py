"""`Resizing`: how pictures of any size become pictures of one."""

import dataclasses

from keras_attention.checks import check_height_and_width, check_whole_number
from keras_attention.data.fields import MOST_PIXELS

INTERPOLATIONS = ("bilinear", "bicubic", "lanczos3", "nearest")


@dataclasses.dataclass(frozen=True)
class Resizing:
    """A picture is resized, and its centre is cut out.

    Args:
        size: int for the shorter side, the other in proportion; or (height, width), to which
            pictures are stretched. None for the size that is cut out: then nothing is.
        interpolation: `"bilinear"`, `"bicubic"`, `"lanczos3"` or `"nearest"`, with antialiasing, as
            Pillow and torchvision do it.

    Example:

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
        if any(there < wanted for there, wanted in zip(smallest, image_size, strict=True)):
            raise ValueError(
                f"{self}: pictures of {smallest[0]} x {smallest[1]} pixels have no "
                f"{image_size[0]} x {image_size[1]} in them. Give a larger size."
            )

    def choose_size(self, height, width, image_size):
        """(height, width) that a picture is resized to before the centre is cut out."""
        if self.size is None:
            return tuple(image_size)
        if isinstance(self.size, tuple):
            return self.size
        short = min(height, width)
        return tuple(self.size * side // short for side in (height, width))

    def apply(self, picture, image_size):
        """float32 (H, W, C) from 0 to 1 as (height, width, C), by TensorFlow."""
        import tensorflow as tf

        size = self.choose_size(*picture.shape[:2], image_size)
        picture = tf.image.resize(picture, size, self.interpolation, antialias=True)
        top, left = ((there - cut) // 2 for there, cut in zip(size, image_size, strict=True))
        return picture[top : top + image_size[0], left : left + image_size[1]]

    def config(self):
        """The entry in a manifest: all that an app needs to do the same."""
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
