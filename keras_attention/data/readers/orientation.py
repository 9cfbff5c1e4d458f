"""EXIF orientation: how a picture is turned that a camera has stored on its side."""

import io

import numpy as np

TAG = 0x0112  # of EXIF 2.3, section 4.6.4
MARKS = (b"Exif", b"eXIf", b"EXIF")  # of JPEG, PNG and WebP
SIDEWAYS = 5  # from this one on height and width are swapped

# What is done to an array (H, W, C), and to points (x, y) in it, to see the picture upright.
TURNED = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: lambda pixels: np.rot90(pixels),
}
MOVED = {
    1: lambda x, y, height, width: (x, y),
    2: lambda x, y, height, width: (width - x, y),
    3: lambda x, y, height, width: (width - x, height - y),
    4: lambda x, y, height, width: (x, height - y),
    5: lambda x, y, height, width: (y, x),
    6: lambda x, y, height, width: (height - y, x),
    7: lambda x, y, height, width: (height - y, width - x),
    8: lambda x, y, height, width: (y, width - x),
}


def find_orientation(content):
    """Find the EXIF orientation of the bytes of a picture file, 1 to 8. It is 1 without any."""
    if not any(mark in content for mark in MARKS):
        return 1
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as picture:
            orientation = picture.getexif().get(TAG, 1)
    except (OSError, SyntaxError, ValueError):  # no picture, or none that Pillow reads
        return 1
    return orientation if orientation in TURNED else 1


def turn_box(box, orientation, size):
    """Turn a box of stored pixels into one of the upright picture.

    Args:
        box: (x0, y0, x1, y1).
        orientation: int, 1 to 8.
        size: (height, width) of the stored pixels.
    """
    move = MOVED[orientation]
    (x0, y0), (x1, y1) = move(*box[:2], *size), move(*box[2:], *size)
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
